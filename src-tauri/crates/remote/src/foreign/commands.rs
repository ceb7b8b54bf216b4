//! Commands to such a host, where its answer says less than it must: what became of them is looked
//! up, and never tried again.

use holdfast_api::inbox::{Disposition, Enqueued};
use holdfast_api::session::{Approve, Cancelled, Submit, Submitted};
use holdfast_api::{ApiError, Selector};
use reqwest::Method;
use serde_json::{Value, json};

use super::waiting::{self, Asked};
use super::{ForeignHost, transcript, unsupported};
use crate::client::{Answer, Limits, json_of};
use crate::error::RemoteError;

/// The host has a message of that key, and does not say what became of it.
pub(super) fn accepted() -> ApiError {
    ApiError::new(
        501,
        RemoteError::Unsupported.code(),
        "the host took a message of this key, which waits no more; whether it ran or was given up \
         it does not tell; the transcript shows what ran",
    )
}

impl ForeignHost {
    /// TR-42 for the answer of a message: its place is found by its key.
    async fn found(
        &self,
        selector: &Selector,
        key: Option<&str>,
    ) -> Result<Option<String>, RemoteError> {
        match key {
            None => Ok(None),
            Some(key) => Ok(transcript::turn_of(
                &self.told_transcript(selector).await?,
                key,
            )),
        }
    }

    /// Its answer to a message is empty. The turn is read off the transcript, and is empty when that
    /// does not tell it.
    pub(super) async fn submitted(
        &self,
        selector: &Selector,
        request: Submit,
    ) -> Result<Submitted, ApiError> {
        self.connected()?;
        let key = request.submission_id.as_deref();
        let before = self.found(selector, key).await?;
        let mut body = json!({ "input": request.input });
        if let Some(key) = key {
            body["submissionId"] = json!(key);
        }
        let sent = self.command(Method::POST, &["submit"], selector, Some(&body));
        let lost = match sent.await {
            Ok(_) => None,
            Err(lost) if lost.is_lost() => Some(lost),
            Err(refused) => return Err(refused.into()),
        };
        let now = self.found(selector, key).await;
        let duplicate = before.is_some();
        match (lost, now) {
            (None, now) => Ok(Submitted {
                turn_id: before.or(now.ok().flatten()).unwrap_or_default(),
                duplicate,
            }),
            (Some(_), Ok(Some(turn_id))) => Ok(Submitted {
                turn_id,
                duplicate: true,
            }),
            (Some(_), Ok(None)) if key.is_some() => Err(ApiError::new(
                504,
                "message_not_arrived",
                "the host's answer was lost, and the host has no such message; it is still here \
                 and can be sent again",
            )),
            (Some(lost), _) => Err(lost.into()),
        }
    }

    /// What the host has of a key: where its message waits, 0 when it waits no more.
    pub(super) async fn receipt(
        &self,
        selector: &Selector,
        key: &str,
    ) -> Result<Enqueued, ApiError> {
        let query = [("key", key)];
        let read = self.read(&["inbox", "receipt"], selector, &query, Limits::ORDINARY);
        match read.await {
            Ok(told) => Ok(waiting::enqueued(&told)?),
            // It has this route; so it is the key that it doesn't know.
            Err(RemoteError::Unsupported) => Err(ApiError::not_found(
                "receipt_unknown",
                "the host has no message of this key; it keeps keys only as long as it runs",
            )),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) async fn enqueued(
        &self,
        selector: &Selector,
        key: &str,
        body: &Value,
    ) -> Result<Enqueued, ApiError> {
        let sent = self.command(Method::POST, &["inbox", "items"], selector, Some(body));
        let told = sent
            .await
            .and_then(|answer: Answer| json_of(&answer).and_then(|told| waiting::enqueued(&told)));
        match told {
            Err(lost) if lost.is_lost() => match self.receipt(selector, key).await {
                Ok(mut receipt) => {
                    if receipt.position > 0 {
                        receipt.disposition = Disposition::QueuedFollowup;
                    }
                    Ok(receipt)
                }
                Err(error) if error.code == "receipt_unknown" => Err(ApiError::new(
                    504,
                    "message_not_arrived",
                    "the host's answer was lost, and the host has no such message; it is still \
                     here and can be sent again",
                )),
                Err(_) => Err(lost.into()),
            },
            told => Ok(told?),
        }
    }

    /// It stops whatever runs, also a turn that was not meant. So it is asked only while that very
    /// turn runs; a turn that begins in between would be stopped in its place.
    pub(super) async fn cancelled(
        &self,
        selector: &Selector,
        turn_id: Option<&str>,
    ) -> Result<Cancelled, ApiError> {
        self.connected()?;
        if self.has_ended(selector, turn_id).await? {
            return Ok(Cancelled::AlreadyEnded);
        }
        let empty = json!({});
        match self
            .command(Method::POST, &["cancel"], selector, Some(&empty))
            .await
        {
            Err(lost) if lost.is_lost() => {
                let told = self.told_status(selector).await;
                match told.map(|told| (told["runtimeState"]["cancelRequested"] == true, told)) {
                    Ok((true, _)) => Ok(Cancelled::Requested),
                    Ok((false, told)) if ended(&told, turn_id) == Some(true) => {
                        Ok(Cancelled::AlreadyEnded)
                    }
                    _ => Err(lost.into()),
                }
            }
            sent => Ok(sent.map(|_| Cancelled::Requested)?),
        }
    }

    async fn has_ended(
        &self,
        selector: &Selector,
        turn_id: Option<&str>,
    ) -> Result<bool, ApiError> {
        let told = self.told_status(selector).await?;
        ended(&told, turn_id).ok_or_else(|| {
            ApiError::conflict(
                "session_mismatch",
                "the host works on another session now, and tells nothing of this one; nothing \
                 was sent; make this one the current one and try again",
            )
        })
    }

    /// It answers the same whether it had such a question or not. So the questions are read before
    /// and after.
    pub(super) async fn approved(
        &self,
        selector: &Selector,
        answer: &Approve,
    ) -> Result<(), ApiError> {
        self.connected()?;
        let asked = self.told_prompts(selector).await?;
        let asked = pending(&asked, answer)?;
        let mut body = json!({
            "id": asked.id,
            "generation": answer.generation,
            "allow": answer.allow,
        });
        match answer.scope.as_deref() {
            None | Some("once") => {}
            Some("session") => body["session"] = json!(true),
            Some(_) => return unsupported("to allow something for longer than the session"),
        }
        if answer
            .reason
            .as_deref()
            .is_some_and(|reason| !reason.is_empty())
        {
            return unsupported(
                "to tell the model why something was denied; deny it without a reason, and tell \
                 the model in a message",
            );
        }
        let sent = self
            .command(Method::POST, &["approve"], selector, Some(&body))
            .await;
        let lost = match sent {
            Ok(_) => None,
            Err(lost) if lost.is_lost() => Some(lost),
            Err(refused) => return Err(refused.into()),
        };
        match self.told_prompts(selector).await {
            Ok(left) if left.iter().any(|left| left.prompt.approval.id == answer.id) => {
                Err(ApiError::new(
                    504,
                    "answer_not_arrived",
                    "the host did not take the answer, and the question still waits; answer it \
                     again",
                ))
            }
            Ok(_) => Ok(()),
            Err(error) => Err(lost.unwrap_or(error).into()),
        }
    }
}

/// Whether that turn runs no more; `None` when the host does not tell.
fn ended(status: &Value, turn_id: Option<&str>) -> Option<bool> {
    let state = &status["runtimeState"];
    let running = state["running"].as_bool()? || state["pendingPrompt"].as_bool()?;
    let same = turn_id.is_none_or(|turn| state["turnId"] == turn);
    Some(!running || !same)
}

/// The question that this answers, when it waits and was not asked anew.
fn pending<'a>(asked: &'a [Asked], answer: &Approve) -> Result<&'a Asked, ApiError> {
    let mut all = asked.iter();
    let Some(asked) = all.find(|asked| asked.prompt.approval.id == answer.id) else {
        return Err(ApiError::conflict(
            "prompt_not_pending",
            "this question no longer waits; nothing was sent; the transcript shows how it ended",
        ));
    };
    if !asked.answerable {
        return unsupported("to answer this question; answer it at the host itself");
    }
    if asked.prompt.approval.generation != answer.generation {
        return Err(ApiError::conflict(
            "prompt_stale",
            "the question was asked anew meanwhile; nothing was sent; look at it again",
        ));
    }
    Ok(asked)
}
