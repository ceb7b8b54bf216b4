//! What waits at such a host: questions to a person, and messages in the queue.
//!
//! Guarantee: a question has a name that means this one question for ever.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_api::inbox::{Disposition, Enqueued, InboxItem, InboxView, Intent};
use holdfast_api::session::{Approval, PendingPrompt};
use serde_json::Value;

use super::moment::Moment;
use super::shapes::{garbled, rows, text};
use crate::error::RemoteError;

/// Its questions count from 1 in each process and each time that a session is made current: only
/// with their turn do they have a name that means one question for ever.
pub(crate) fn prompt_id(turn_id: &str, id: &str) -> String {
    format!("{turn_id}/{id}")
}

/// One question, and what it is called there.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Asked {
    pub(super) prompt: PendingPrompt,
    /// Its id there.
    pub(super) id: String,
    /// It can be answered with yes or no.
    pub(super) answerable: bool,
}

/// The turns that wait for a person in a session of that status.
pub(super) fn turns(status: &Value) -> BTreeSet<String> {
    let state = &status["runtimeState"];
    let waiting = state["pendingInteractions"]
        .as_array()
        .into_iter()
        .flatten();
    let mut turns: BTreeSet<String> = waiting.map(|one| text(one, "turnId")).collect();
    if state["pendingPrompt"] == true {
        turns.insert(text(state, "turnId"));
    }
    turns.remove("");
    turns
}

/// The questions of these turns.
pub(super) fn asked(told: &Value, turns: &BTreeSet<String>) -> Result<Vec<Asked>, RemoteError> {
    let questions = rows(told)?.iter();
    let own = questions.filter(|question| turns.contains(&text(question, "turnId")));
    own.map(|question| {
        let (id, turn_id) = (text(question, "promptId"), text(question, "turnId"));
        let approval = &question["approval"];
        let answerable = approval.is_object();
        if id.is_empty() {
            return Err(garbled("a question has no id"));
        }
        let name = prompt_id(&turn_id, &id);
        let offered: &[&str] = if answerable {
            &["once", "session"]
        } else {
            &[]
        };
        Ok(Asked {
            prompt: PendingPrompt {
                prompt_id: name.clone(),
                kind: "approval".to_owned(),
                turn_id,
                approval: Approval {
                    id: name,
                    tool: if answerable {
                        text(approval, "tool")
                    } else {
                        text(question, "promptKind")
                    },
                    subject: text(approval, "subject"),
                    diff: None,
                    generation: approval["generation"].as_u64().unwrap_or_default(),
                    scopes: offered.iter().map(|scope| (*scope).to_owned()).collect(),
                    call_id: String::new(),
                    reason: if answerable {
                        text(approval, "reason")
                    } else {
                        "This question can be answered at the host itself only.".to_owned()
                    },
                    earlier: None,
                },
            },
            id,
            answerable,
        })
    })
    .collect()
}

/// The queue; `whole` has the whole texts, by item, since the list has their beginnings only.
pub(super) fn inbox(
    told: &Value,
    whole: &BTreeMap<String, String>,
) -> Result<InboxView, RemoteError> {
    let items = rows(&told["items"])?.iter().filter_map(|item| {
        let item_id = text(item, "id");
        Some((item, whole.get(&item_id)?.clone(), item_id))
    });
    let items: Vec<InboxItem> = items
        .zip(1..)
        .map(|((item, input, item_id), position)| InboxItem {
            item_id,
            input,
            intent: if item["intent"] == "steer" {
                Intent::Steer
            } else {
                Intent::Followup
            },
            position,
            queued_at: text(item, "createdAt")
                .parse::<Moment>()
                .map_or(0, |moment| moment.0),
            idempotency_key: text(item, "idempotencyKey"),
            recovered: false,
        })
        .collect();
    let paused = told["paused"]
        .as_bool()
        .ok_or(garbled("its paused is missing"))?;
    let recovered = told["recovered"] == true;
    Ok(InboxView {
        revision: told["revision"]
            .as_u64()
            .ok_or(garbled("it has no revision"))?,
        paused,
        recovered,
        reason: if paused && recovered {
            "host_restarted".to_owned()
        } else {
            String::new()
        },
        items,
        capacity: told["capacity"]["maxItems"].as_u64().unwrap_or_default(),
    })
}

/// Ids of the items that wait.
pub(super) fn ids(told: &Value) -> Result<Vec<String>, RemoteError> {
    let items = rows(&told["items"])?.iter();
    Ok(items.map(|item| text(item, "id")).collect())
}

/// What became of a message for its queue.
pub(super) fn enqueued(told: &Value) -> Result<Enqueued, RemoteError> {
    let item_id = text(told, "itemId");
    if item_id.is_empty() {
        return Err(garbled("it names no item"));
    }
    Ok(Enqueued {
        item_id,
        disposition: match told["disposition"].as_str() {
            Some("queued_followup") => Disposition::QueuedFollowup,
            Some("idempotent_hit") => Disposition::IdempotentHit,
            // Into the turn that runs, or a turn of its own.
            Some("steer_accepted" | "started") => Disposition::Started,
            _ => return Err(garbled("it does not say what became of the message")),
        },
        position: told["position"].as_u64().unwrap_or_default(),
    })
}
