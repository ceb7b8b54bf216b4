//! Commands whose answer got lost: what became of them is looked up, and never tried again.
//!
//! Guarantees: a message is found by its key (RS-16), a recovery action by the snapshot (TR-42), an
//! answer by the questions that still wait, a Stop by the session's state; when the look fails too,
//! that is said, and the person decides.

use holdfast_api::inbox::{Disposition, Enqueued, InboxReceipt, ReceiptState};
use holdfast_api::recovery::ToolRecoverySnapshot;
use holdfast_api::session::{Approve, Cancelled, Submitted};
use holdfast_api::{ApiError, Selector, SessionHost};
use holdfast_domain::runtime::snapshot::Phase;
use serde_json::Value;

use crate::error::RemoteError;
use crate::own::OwnHost;

/// The receipt of that key, when the answer of its command was lost. `None` when there is none: the
/// message did not arrive, and the person may send it again with the same key.
async fn receipt(
    host: &OwnHost,
    selector: &Selector,
    key: Option<&str>,
    lost: RemoteError,
) -> Result<InboxReceipt, ApiError> {
    let Some(key) = key else {
        return Err(lost.into());
    };
    match host.inbox_receipt(selector, key).await {
        Ok(receipt) => Ok(receipt),
        Err(error) if error.status == 404 => Err(ApiError::new(
            504,
            "message_not_arrived",
            "the host's answer was lost, and the host has no such message; it is still here and \
             can be sent again",
        )),
        Err(_) => Err(lost.into()),
    }
}

pub(crate) async fn submitted(
    host: &OwnHost,
    selector: &Selector,
    key: Option<&str>,
    sent: Result<Submitted, RemoteError>,
) -> Result<Submitted, ApiError> {
    match sent {
        Err(lost) if lost.is_lost() => {
            let receipt = receipt(host, selector, key, lost).await?;
            Ok(Submitted {
                turn_id: receipt.turn_id.unwrap_or(receipt.item_id),
                duplicate: true,
            })
        }
        sent => Ok(sent?),
    }
}

pub(crate) async fn enqueued(
    host: &OwnHost,
    selector: &Selector,
    key: &str,
    sent: Result<Enqueued, RemoteError>,
) -> Result<Enqueued, ApiError> {
    match sent {
        Err(lost) if lost.is_lost() => {
            let receipt = receipt(host, selector, Some(key), lost).await?;
            Ok(Enqueued {
                item_id: receipt.item_id,
                disposition: match receipt.state {
                    ReceiptState::Queued => Disposition::QueuedFollowup,
                    ReceiptState::Running | ReceiptState::Done | ReceiptState::Deleted => {
                        receipt.disposition
                    }
                },
                position: 0,
            })
        }
        sent => Ok(sent?),
    }
}

/// TR-42: the snapshot shows what became of it, whoever did it.
pub(crate) async fn recovered(
    host: &OwnHost,
    selector: &Selector,
    sent: Result<ToolRecoverySnapshot, RemoteError>,
) -> Result<ToolRecoverySnapshot, ApiError> {
    match sent {
        Err(lost) if lost.is_lost() => match host.recovery(selector).await {
            Ok(snapshot) => Ok(snapshot),
            Err(_) => Err(lost.into()),
        },
        sent => Ok(sent?),
    }
}

/// A question that waits no more was answered: by this answer, or by another that came first, which
/// the transcript shows. One that still waits can be answered.
pub(crate) async fn answered(
    host: &OwnHost,
    selector: &Selector,
    answer: &Approve,
    sent: Result<Value, RemoteError>,
) -> Result<(), ApiError> {
    match sent {
        Err(lost) if lost.is_lost() => {
            let Ok(prompts) = host.pending_prompts(selector).await else {
                return Err(lost.into());
            };
            let waits = prompts.iter().any(|prompt| prompt.approval.id == answer.id);
            if waits {
                return Err(ApiError::new(
                    504,
                    "answer_not_arrived",
                    "the host's answer was lost, and the question still waits; answer it again",
                ));
            }
            Ok(())
        }
        sent => Ok(sent.map(drop)?),
    }
}

pub(crate) async fn cancelled(
    host: &OwnHost,
    selector: &Selector,
    turn_id: Option<&str>,
    sent: Result<Value, RemoteError>,
) -> Result<Cancelled, ApiError> {
    match sent {
        Ok(reply) if reply["alreadyEnded"] == true => Ok(Cancelled::AlreadyEnded),
        Ok(_) => Ok(Cancelled::Requested),
        Err(lost) if lost.is_lost() => {
            let Ok(status) = host.status(selector).await else {
                return Err(lost.into());
            };
            let Some(state) = status.runtime_state else {
                return Err(lost.into());
            };
            let same = turn_id.is_none_or(|turn| turn == state.turn_id);
            if !same || state.phase == Phase::Idle {
                Ok(Cancelled::AlreadyEnded)
            } else if state.cancel_requested {
                Ok(Cancelled::Requested)
            } else {
                Err(lost.into())
            }
        }
        Err(error) => Err(error.into()),
    }
}
