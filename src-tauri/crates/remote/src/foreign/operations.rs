//! Every operation of a host, as such a host has it or has it not.

use std::collections::BTreeMap;

use async_trait::async_trait;
use holdfast_api::history::{CompactionStarted, Rewind, RewindReply};
use holdfast_api::inbox::{
    EditItem, Enqueue, Enqueued, InboxReceipt, InboxView, MoveItem, ReceiptState,
};
use holdfast_api::recovery::ToolRecoverySnapshot;
use holdfast_api::session::{
    Approve, BackgroundJob, Cancel, CancelJob, Cancelled, CreateSession, CreatedSession, Job,
    PatchSession, PendingPrompt, RuntimeStates, SessionsPage, SessionsQuery, Status, Submit,
    Submitted, session_path,
};
use holdfast_api::transcript::{
    DiffReply, OutputPage, PageQuery, TranscriptPage, TranscriptSnapshot,
};
use holdfast_api::{ApiError, Selector, SessionHost};
use holdfast_domain::recovery::admission::ActionRequest;
use reqwest::Method;
use serde_json::json;

use super::{ForeignHost, commands, named, shapes, transcript, unsupported, waiting};
use crate::client::Limits;
use crate::error::RemoteError;

#[async_trait]
impl SessionHost for ForeignHost {
    async fn status(&self, selector: &Selector) -> Result<Status, ApiError> {
        let told = self.told_status(selector).await?;
        let list = self.read_all(&["sessions"], Limits::ORDINARY).await?;
        let permission = self.read_all(&["permission"], Limits::ORDINARY).await?;
        let title = shapes::title(&list, named(selector)?);
        Ok(shapes::status(
            &told,
            title,
            shapes::workspace(&permission),
        )?)
    }

    async fn runtime_states(&self) -> Result<RuntimeStates, ApiError> {
        let told = self.read_all(&["runtime-states"], Limits::VERIFICATION);
        Ok(shapes::states(&told.await?)?)
    }

    async fn tool_recovery_snapshot(
        &self,
        selector: &Selector,
    ) -> Result<ToolRecoverySnapshot, ApiError> {
        let told = self.read(&["tool-recovery"], selector, &[], Limits::RECOVERY);
        Ok(shapes::recovery(told.await?, named(selector)?)?)
    }

    async fn resolve_tool_recovery(
        &self,
        _: &Selector,
        _: ActionRequest,
        _: &str,
    ) -> Result<ToolRecoverySnapshot, ApiError> {
        unsupported("to decide about a call of unknown outcome; its recovery is retired")
    }

    async fn list_sessions(&self, query: &SessionsQuery) -> Result<SessionsPage, ApiError> {
        let told = self.read_all(&["sessions"], Limits::ORDINARY).await?;
        let open = self.runtime_states().await?;
        let permission = self.read_all(&["permission"], Limits::ORDINARY).await?;
        let workspace = shapes::workspace(&permission);
        Ok(shapes::sessions(&told, &open, &workspace, query)?)
    }

    async fn create_session(&self, request: CreateSession) -> Result<CreatedSession, ApiError> {
        let CreateSession {
            workspace,
            title,
            model,
            mode,
        } = request;
        if title.is_some() || model.is_some() || mode.is_some() {
            return unsupported("to begin a session with a title, a model or a mode");
        }
        if let Some(workspace) = workspace {
            let permission = self.read_all(&["permission"], Limits::ORDINARY).await?;
            if shapes::workspace(&permission) != workspace {
                return unsupported("to begin a session in another folder than its own");
            }
        }
        let client = self.inner.client()?;
        let request = client.request(Method::POST, &["new"]);
        let session_id = Self::now_current(&self.send(request, Some(&json!({}))).await?)?;
        Ok(CreatedSession {
            session_path: session_path(&session_id),
            session_id,
        })
    }

    async fn patch_session(&self, _: &str, _: PatchSession) -> Result<(), ApiError> {
        unsupported("to change a session")
    }

    async fn delete_session(&self, _: &str) -> Result<(), ApiError> {
        unsupported("to put a session in a trash")
    }

    async fn resume(&self, session_id: &str) -> Result<(), ApiError> {
        let client = self.inner.client()?;
        let request = client.request(Method::POST, &["resume"]);
        let body = json!({ "sessionId": session_id });
        let now = Self::now_current(&self.send(request, Some(&body)).await?)?;
        if now == session_id {
            Ok(())
        } else {
            Err(shapes::of_another_session().into())
        }
    }

    async fn submit(&self, selector: &Selector, request: Submit) -> Result<Submitted, ApiError> {
        self.submitted(selector, request).await
    }

    async fn inbox(&self, selector: &Selector) -> Result<InboxView, ApiError> {
        let told = self
            .read(&["inbox"], selector, &[], Limits::ORDINARY)
            .await?;
        let mut whole = BTreeMap::new();
        for id in waiting::ids(&told)? {
            let parts = ["inbox", "items", id.as_str()];
            match self.read(&parts, selector, &[], Limits::ORDINARY).await {
                Ok(item) => {
                    let input = item["envelope"]["rawText"].as_str();
                    let input = input.ok_or(shapes::garbled("a message that waits has no text"))?;
                    whole.insert(id, input.to_owned());
                }
                // It waits no more.
                Err(RemoteError::Refused(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(waiting::inbox(&told, &whole)?)
    }

    async fn inbox_receipt(
        &self,
        selector: &Selector,
        key: &str,
    ) -> Result<InboxReceipt, ApiError> {
        let receipt = self.receipt(selector, key).await?;
        if receipt.position == 0 {
            return Err(commands::accepted());
        }
        Ok(InboxReceipt {
            key: key.to_owned(),
            item_id: receipt.item_id,
            disposition: receipt.disposition,
            state: ReceiptState::Queued,
            turn_id: None,
        })
    }

    async fn enqueue(&self, selector: &Selector, request: Enqueue) -> Result<Enqueued, ApiError> {
        let body = json!({
            "input": request.input,
            "intent": request.intent,
            "idempotencyKey": request.idempotency_key,
        });
        self.enqueued(selector, &request.idempotency_key, &body)
            .await
    }

    async fn edit_item(
        &self,
        selector: &Selector,
        item_id: &str,
        edit: EditItem,
    ) -> Result<(), ApiError> {
        if edit.intent.is_some() {
            return unsupported("to send a message that waits sooner");
        }
        let Some(input) = edit.input else {
            return Ok(());
        };
        let parts = ["inbox", "items", item_id];
        let body = json!({ "input": input });
        self.command(Method::PATCH, &parts, selector, Some(&body))
            .await?;
        Ok(())
    }

    async fn delete_item(&self, selector: &Selector, item_id: &str) -> Result<(), ApiError> {
        let parts = ["inbox", "items", item_id];
        self.command(Method::DELETE, &parts, selector, None).await?;
        Ok(())
    }

    async fn move_item(&self, selector: &Selector, request: MoveItem) -> Result<(), ApiError> {
        let to = request.position.saturating_sub(1);
        let body = json!({ "id": request.item_id, "toIndex": to });
        self.command(Method::POST, &["inbox", "move"], selector, Some(&body))
            .await?;
        Ok(())
    }

    async fn pause_inbox(&self, selector: &Selector) -> Result<(), ApiError> {
        let body = json!({});
        self.command(Method::POST, &["inbox", "pause"], selector, Some(&body))
            .await?;
        Ok(())
    }

    async fn resume_inbox(&self, selector: &Selector) -> Result<(), ApiError> {
        let body = json!({});
        self.command(Method::POST, &["inbox", "resume"], selector, Some(&body))
            .await?;
        Ok(())
    }

    async fn cancel(&self, selector: &Selector, request: Cancel) -> Result<Cancelled, ApiError> {
        self.cancelled(selector, request.turn_id.as_deref()).await
    }

    async fn compact(&self, _: &Selector) -> Result<CompactionStarted, ApiError> {
        unsupported("to compact a conversation, since it names no turn that could be stopped")
    }

    async fn rewind(&self, _: &Selector, _: Rewind) -> Result<RewindReply, ApiError> {
        unsupported("to go back to a message")
    }

    async fn fork(&self, _: &Selector) -> Result<CreatedSession, ApiError> {
        unsupported("to copy a session")
    }

    async fn pending_prompts(&self, selector: &Selector) -> Result<Vec<PendingPrompt>, ApiError> {
        let asked = self.told_prompts(selector).await?;
        Ok(asked.into_iter().map(|asked| asked.prompt).collect())
    }

    async fn approve(&self, selector: &Selector, answer: Approve) -> Result<(), ApiError> {
        self.approved(selector, &answer).await
    }

    async fn transcript_page(
        &self,
        selector: &Selector,
        query: &PageQuery,
    ) -> Result<TranscriptPage, ApiError> {
        if query.before.is_some() {
            return unsupported("to read the earlier part of a conversation");
        }
        let told = transcript::read(&self.told_transcript(selector).await?)?;
        Ok(TranscriptPage {
            items: told
                .items
                .into_iter()
                .take(query.limit.unwrap_or(100))
                .collect(),
            before: None,
        })
    }

    async fn transcript_snapshot(
        &self,
        selector: &Selector,
    ) -> Result<TranscriptSnapshot, ApiError> {
        // What comes after this is applied to it once more, which changes nothing.
        let sink = &self.inner.sink;
        let up_to = sink.id(sink.latest());
        let told = transcript::read(&self.told_transcript(selector).await?)?;
        Ok(TranscriptSnapshot {
            items: told.items,
            live: told.live,
            progress: Vec::new(),
            before: None,
            up_to,
        })
    }

    async fn diff(&self, _: &Selector, _: &str) -> Result<DiffReply, ApiError> {
        unsupported("to read a diff by itself; those that it has are in the transcript")
    }

    async fn output(&self, _: &Selector, _: &str, _: u64) -> Result<OutputPage, ApiError> {
        unsupported("to read a call's whole output")
    }

    async fn jobs(&self, _: &Selector) -> Result<Vec<Job>, ApiError> {
        unsupported("to list its jobs; their count is in its state")
    }

    async fn cancel_job(&self, _: &Selector, _: CancelJob) -> Result<(), ApiError> {
        unsupported("to stop a job")
    }

    async fn background_job(&self, _: &Selector, _: BackgroundJob) -> Result<Job, ApiError> {
        unsupported("to let a running command go on as a job")
    }
}
