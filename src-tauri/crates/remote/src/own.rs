//! A host of our own that is somewhere else, as the same trait that the local one has (TR-02).
//!
//! Guarantees: every request names its session and asserts it, so that none can reach another one;
//! a reply about another session is refused (TR-42); commands go out only while the connection
//! stands (RS-36), and once.

use std::sync::Arc;

use async_trait::async_trait;
use holdfast_api::history::{CompactionStarted, Rewind, RewindReply};
use holdfast_api::inbox::{EditItem, Enqueue, Enqueued, InboxReceipt, InboxView, MoveItem};
use holdfast_api::recovery::ToolRecoverySnapshot;
use holdfast_api::session::{
    Approve, BackgroundJob, Cancel, CancelJob, Cancelled, CreateSession, CreatedSession, Job,
    PatchSession, PendingPrompt, Resume, RuntimeStates, SessionsPage, SessionsQuery, Status,
    Submit, Submitted, session_path,
};
use holdfast_api::transcript::{
    DiffReply, OutputPage, PageQuery, TranscriptPage, TranscriptSnapshot,
};
use holdfast_api::{ApiError, Selector, SessionHost};
use holdfast_domain::recovery::admission::ActionRequest;
use reqwest::{Method, RequestBuilder};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::client::{Limits, decoded};
use crate::commands;
use crate::connection::Inner;
use crate::error::RemoteError;

/// A host that speaks as we do.
pub(crate) struct OwnHost {
    pub(crate) inner: Arc<Inner>,
}

impl OwnHost {
    /// A request about one session, which is selected and asserted (TR-41).
    fn request(
        &self,
        method: Method,
        parts: &[&str],
        selector: &Selector,
    ) -> Result<RequestBuilder, RemoteError> {
        let Some(id) = &selector.session else {
            return Err(RemoteError::Refused(Box::new(ApiError::bad_request(
                "session_missing",
                "a request to another host has to name its session; nothing was sent",
            ))));
        };
        Ok(self
            .inner
            .client()?
            .request(method, parts)
            .query(&[("session", id)])
            .header("x-reasonix-expected-session-id", id)
            .header("x-reasonix-expected-session-path", session_path(id)))
    }

    pub(crate) async fn read<T: DeserializeOwned>(
        &self,
        parts: &[&str],
        selector: &Selector,
        query: &[(&str, String)],
        limits: Limits,
    ) -> Result<T, RemoteError> {
        let request = self.request(Method::GET, parts, selector)?.query(query);
        decoded(self.inner.client()?.value(request, limits).await?)
    }

    /// Sends a command, once, while the connection stands.
    async fn command(
        &self,
        method: Method,
        parts: &[&str],
        selector: &Selector,
        body: &Value,
    ) -> Result<Value, RemoteError> {
        let request = self.request(method, parts, selector)?;
        self.send(request, body, Limits::ORDINARY).await
    }

    async fn send(
        &self,
        request: RequestBuilder,
        body: &Value,
        limits: Limits,
    ) -> Result<Value, RemoteError> {
        if !self.inner.is_connected() {
            return Err(RemoteError::Disconnected);
        }
        let request = if body.is_null() {
            request
        } else {
            request.json(body)
        };
        self.inner.client()?.value(request, limits).await
    }

    pub(crate) async fn recovery(
        &self,
        selector: &Selector,
    ) -> Result<ToolRecoverySnapshot, RemoteError> {
        let snapshot = self.read(&["tool-recovery"], selector, &[], Limits::RECOVERY);
        of_session(selector, snapshot.await?)
    }
}

/// TR-42: another session's snapshot is refused.
fn of_session(
    selector: &Selector,
    snapshot: ToolRecoverySnapshot,
) -> Result<ToolRecoverySnapshot, RemoteError> {
    let wanted = selector.session.as_deref().map(session_path);
    if wanted.as_deref() == Some(snapshot.session_path.as_str()) {
        Ok(snapshot)
    } else {
        Err(RemoteError::Garbled(
            "it is about another session".to_owned(),
        ))
    }
}

fn body(of: &impl serde::Serialize) -> Result<Value, RemoteError> {
    serde_json::to_value(of).map_err(|error| RemoteError::NotSent(error.to_string()))
}

#[async_trait]
impl SessionHost for OwnHost {
    async fn status(&self, selector: &Selector) -> Result<Status, ApiError> {
        let status: Status = self
            .read(&["status"], selector, &[], Limits::ORDINARY)
            .await?;
        if selector.session.as_deref() != Some(status.session_id.as_str()) {
            let other = "it is about another session".to_owned();
            return Err(RemoteError::Garbled(other).into());
        }
        Ok(status)
    }

    async fn runtime_states(&self) -> Result<RuntimeStates, ApiError> {
        let none: [(&str, &str); 0] = [];
        let client = self.inner.client()?;
        let states = client.get(&["runtime-states"], &none, Limits::VERIFICATION);
        Ok(states.await?)
    }

    async fn tool_recovery_snapshot(
        &self,
        selector: &Selector,
    ) -> Result<ToolRecoverySnapshot, ApiError> {
        Ok(self.recovery(selector).await?)
    }

    async fn resolve_tool_recovery(
        &self,
        selector: &Selector,
        request: ActionRequest,
        _: &str,
    ) -> Result<ToolRecoverySnapshot, ApiError> {
        let sent = self
            .command(Method::POST, &["tool-recovery"], selector, &body(&request)?)
            .await
            .and_then(decoded::<ToolRecoverySnapshot>)
            .and_then(|snapshot| of_session(selector, snapshot));
        commands::recovered(self, selector, sent).await
    }

    async fn list_sessions(&self, query: &SessionsQuery) -> Result<SessionsPage, ApiError> {
        let client = self.inner.client()?;
        let page = client.get(&["sessions"], query, Limits::ORDINARY);
        Ok(page.await?)
    }

    async fn create_session(&self, request: CreateSession) -> Result<CreatedSession, ApiError> {
        let client = self.inner.client()?;
        let post = client.request(Method::POST, &["sessions"]);
        let created = self.send(post, &body(&request)?, Limits::ORDINARY).await?;
        Ok(decoded(created)?)
    }

    async fn patch_session(&self, session_id: &str, patch: PatchSession) -> Result<(), ApiError> {
        let client = self.inner.client()?;
        let request = client.request(Method::PATCH, &["sessions", session_id]);
        self.send(request, &body(&patch)?, Limits::ORDINARY).await?;
        Ok(())
    }

    async fn delete_session(&self, session_id: &str) -> Result<(), ApiError> {
        let client = self.inner.client()?;
        let request = client.request(Method::DELETE, &["sessions", session_id]);
        self.send(request, &Value::Null, Limits::ORDINARY).await?;
        Ok(())
    }

    async fn resume(&self, session_id: &str) -> Result<(), ApiError> {
        let client = self.inner.client()?;
        let request = client.request(Method::POST, &["resume"]);
        let resume = Resume {
            session_id: session_id.to_owned(),
        };
        self.send(request, &body(&resume)?, Limits::ORDINARY)
            .await?;
        Ok(())
    }

    async fn submit(&self, selector: &Selector, request: Submit) -> Result<Submitted, ApiError> {
        let sent = self
            .command(Method::POST, &["submit"], selector, &body(&request)?)
            .await
            .and_then(decoded::<Submitted>);
        commands::submitted(self, selector, request.submission_id.as_deref(), sent).await
    }

    async fn inbox(&self, selector: &Selector) -> Result<InboxView, ApiError> {
        let view = self.read(&["inbox"], selector, &[], Limits::ORDINARY);
        Ok(view.await?)
    }

    async fn inbox_receipt(
        &self,
        selector: &Selector,
        key: &str,
    ) -> Result<InboxReceipt, ApiError> {
        let query = [("key", key.to_owned())];
        let receipt = self.read(&["inbox", "receipt"], selector, &query, Limits::ORDINARY);
        Ok(receipt.await?)
    }

    async fn enqueue(&self, selector: &Selector, request: Enqueue) -> Result<Enqueued, ApiError> {
        let sent = self
            .command(
                Method::POST,
                &["inbox", "items"],
                selector,
                &body(&request)?,
            )
            .await
            .and_then(decoded::<Enqueued>);
        commands::enqueued(self, selector, &request.idempotency_key, sent).await
    }

    async fn edit_item(
        &self,
        selector: &Selector,
        item_id: &str,
        edit: EditItem,
    ) -> Result<(), ApiError> {
        let parts = ["inbox", "items", item_id];
        self.command(Method::PATCH, &parts, selector, &body(&edit)?)
            .await?;
        Ok(())
    }

    async fn delete_item(&self, selector: &Selector, item_id: &str) -> Result<(), ApiError> {
        let parts = ["inbox", "items", item_id];
        self.command(Method::DELETE, &parts, selector, &Value::Null)
            .await?;
        Ok(())
    }

    async fn move_item(&self, selector: &Selector, request: MoveItem) -> Result<(), ApiError> {
        let parts = ["inbox", "move"];
        self.command(Method::POST, &parts, selector, &body(&request)?)
            .await?;
        Ok(())
    }

    async fn pause_inbox(&self, selector: &Selector) -> Result<(), ApiError> {
        let parts = ["inbox", "pause"];
        self.command(Method::POST, &parts, selector, &json!({}))
            .await?;
        Ok(())
    }

    async fn resume_inbox(&self, selector: &Selector) -> Result<(), ApiError> {
        let parts = ["inbox", "resume"];
        self.command(Method::POST, &parts, selector, &json!({}))
            .await?;
        Ok(())
    }

    async fn cancel(&self, selector: &Selector, request: Cancel) -> Result<Cancelled, ApiError> {
        let turn = request.turn_id.clone();
        let sent = self
            .command(Method::POST, &["cancel"], selector, &body(&request)?)
            .await;
        commands::cancelled(self, selector, turn.as_deref(), sent).await
    }

    async fn compact(&self, selector: &Selector) -> Result<CompactionStarted, ApiError> {
        let empty = json!({});
        let sent = self.command(Method::POST, &["compact"], selector, &empty);
        Ok(decoded(sent.await?)?)
    }

    async fn rewind(&self, selector: &Selector, request: Rewind) -> Result<RewindReply, ApiError> {
        let body = body(&request)?;
        let sent = self.command(Method::POST, &["rewind"], selector, &body);
        Ok(decoded(sent.await?)?)
    }

    async fn fork(&self, selector: &Selector) -> Result<CreatedSession, ApiError> {
        let empty = json!({});
        let sent = self.command(Method::POST, &["fork"], selector, &empty);
        Ok(decoded(sent.await?)?)
    }

    async fn pending_prompts(&self, selector: &Selector) -> Result<Vec<PendingPrompt>, ApiError> {
        let prompts = self.read(&["pending-prompts"], selector, &[], Limits::ORDINARY);
        Ok(prompts.await?)
    }

    async fn approve(&self, selector: &Selector, answer: Approve) -> Result<(), ApiError> {
        let sent = self
            .command(Method::POST, &["approve"], selector, &body(&answer)?)
            .await;
        commands::answered(self, selector, &answer, sent).await
    }

    async fn transcript_page(
        &self,
        selector: &Selector,
        query: &PageQuery,
    ) -> Result<TranscriptPage, ApiError> {
        let mut pairs = Vec::new();
        if let Some(before) = query.before {
            pairs.push(("before", before.to_string()));
        }
        if let Some(limit) = query.limit {
            pairs.push(("limit", limit.to_string()));
        }
        let page = self.read(&["transcript", "page"], selector, &pairs, Limits::ORDINARY);
        Ok(page.await?)
    }

    async fn transcript_snapshot(
        &self,
        selector: &Selector,
    ) -> Result<TranscriptSnapshot, ApiError> {
        let parts = ["transcript", "snapshot"];
        let read = self.read(&parts, selector, &[], Limits::ORDINARY);
        let mut snapshot: TranscriptSnapshot = read.await?;
        let inner = &self.inner;
        let session_id = selector.session.as_deref().unwrap_or_default();
        let mut places = inner.places();
        let here = places.speak(session_id, &snapshot.up_to, inner.sink.latest());
        snapshot.up_to = inner.sink.id(here);
        Ok(snapshot)
    }

    async fn diff(&self, selector: &Selector, attempt_id: &str) -> Result<DiffReply, ApiError> {
        let query = [("attempt", attempt_id.to_owned())];
        let diff = self.read(&["diff"], selector, &query, Limits::ORDINARY);
        Ok(diff.await?)
    }

    async fn output(
        &self,
        selector: &Selector,
        attempt_id: &str,
        offset: u64,
    ) -> Result<OutputPage, ApiError> {
        let query = [
            ("attempt", attempt_id.to_owned()),
            ("offset", offset.to_string()),
        ];
        let output = self.read(&["output"], selector, &query, Limits::ORDINARY);
        Ok(output.await?)
    }

    async fn jobs(&self, selector: &Selector) -> Result<Vec<Job>, ApiError> {
        let jobs = self.read(&["jobs"], selector, &[], Limits::ORDINARY);
        Ok(jobs.await?)
    }

    async fn cancel_job(&self, selector: &Selector, request: CancelJob) -> Result<(), ApiError> {
        let parts = ["jobs", "cancel"];
        self.command(Method::POST, &parts, selector, &body(&request)?)
            .await?;
        Ok(())
    }

    async fn background_job(
        &self,
        selector: &Selector,
        request: BackgroundJob,
    ) -> Result<Job, ApiError> {
        let body = body(&request)?;
        let parts = ["jobs", "background"];
        let sent = self.command(Method::POST, &parts, selector, &body);
        Ok(decoded(sent.await?)?)
    }
}
