//! What a person does to a tab's queue (RS-16).

use holdfast_api::ApiError;
use holdfast_api::app::Nothing;
use holdfast_api::inbox::{
    EditItem, Enqueue, Enqueued, MoveItem, TabEditItem, TabEnqueue, TabItem, TabMoveItem,
};

use super::bound::Bound;
use crate::desktop::Inner;

impl Inner {
    pub(super) async fn enqueue(&self, request: TabEnqueue) -> Result<Enqueued, ApiError> {
        let bound = self.bound(&request.tab_id)?;
        let enqueue = Enqueue {
            input: request.input.clone(),
            intent: request.intent,
            idempotency_key: request.idempotency_key,
        };
        let enqueued = bound.host.enqueue(&bound.selector(), enqueue).await?;
        self.clear_draft(&bound, &request.input).await;
        Ok(enqueued)
    }

    pub(super) async fn edit_item(&self, request: TabEditItem) -> Result<Nothing, ApiError> {
        let bound = self.bound(&request.tab_id)?;
        let edit = EditItem {
            input: request.input,
            intent: request.intent,
        };
        bound
            .host
            .edit_item(&bound.selector(), &request.item_id, edit)
            .await?;
        Ok(Nothing {})
    }

    pub(super) async fn delete_item(&self, request: TabItem) -> Result<Nothing, ApiError> {
        let bound = self.bound(&request.tab_id)?;
        bound
            .host
            .delete_item(&bound.selector(), &request.item_id)
            .await?;
        Ok(Nothing {})
    }

    pub(super) async fn move_item(&self, request: TabMoveItem) -> Result<Nothing, ApiError> {
        let bound = self.bound(&request.tab_id)?;
        let wanted = MoveItem {
            item_id: request.item_id,
            position: request.position,
        };
        bound.host.move_item(&bound.selector(), wanted).await?;
        Ok(Nothing {})
    }

    /// RS-16: accepted, so the draft of the same words is cleared.
    pub(super) async fn clear_draft(&self, bound: &Bound, input: &str) {
        let cleared = self.shelf.change(|remembered| {
            remembered
                .tab_mut(&bound.tab_id)
                .filter(|tab| tab.generation == bound.generation)
                .filter(|tab| !tab.draft.is_empty() && tab.draft.trim() == input.trim())
                .map(|tab| tab.draft.clear())
                .is_some()
        });
        if cleared && let Err(error) = self.shelf.save().await {
            self.tell("", error.code(), &error.to_string());
        }
    }
}
