//! A session's host: this program, or the one that holds the session, through its local socket.
//!
//! Guarantees: a request that changes something is sent once; when its answer is lost that is said,
//! and nothing is sent again (TR-42).

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow};
use holdfast_api::host::Selector;
use holdfast_api::recovery::ToolRecoverySnapshot;
use holdfast_api::session::{CancelJob, Job, Status};
use holdfast_api::transcript::{TranscriptItem, TranscriptPage};
use holdfast_api::{ApiError, SessionHost};
use holdfast_controller::Host;
use holdfast_domain::recovery::admission::ActionRequest;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::data;

/// Longest wait for an answer of the holder; an inspection takes up to 5 s.
const ANSWER_TIME: Duration = Duration::from_secs(15);
/// Between two looks at what still runs.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// A session's transcript as the program that holds it tells it, oldest first: what runs is known
/// only there. `None` when nobody holds it, or whoever does can't be asked; then the log is what
/// there is to read.
pub(crate) async fn transcript(host: &Host, session: &str) -> Option<Vec<TranscriptItem>> {
    let client = client(&host.holder_socket(session)?).ok()?;
    let mut items = Vec::new();
    let mut before = None;
    loop {
        let mut url = format!("http://localhost/transcript/page?session={session}&limit=200");
        if let Some(before) = before {
            url.push_str(&format!("&before={before}"));
        }
        let answer = client.get(url).send().await.ok()?;
        let page: TranscriptPage = answer.error_for_status().ok()?.json().await.ok()?;
        items.extend(page.items);
        before = page.before;
        if before.is_none() {
            items.reverse();
            return Some(items);
        }
    }
}

/// Whoever can answer for one session.
pub(crate) struct Holder {
    session: String,
    host: Host,
    client: Option<reqwest::Client>,
}

impl Holder {
    /// Takes the session, or finds who holds it.
    pub(crate) async fn of(folder: Option<PathBuf>, session: &str) -> anyhow::Result<Self> {
        let host = data::host(data::folder(folder)?, None)?;
        let client = match host.status(&Selector::of(session)).await {
            Ok(_) => None,
            Err(error) if error.code == "session_held" => match host.holder_socket(session) {
                Some(socket) => Some(client(&socket)?),
                None => return Err(in_words(error)),
            },
            Err(error) => return Err(in_words(error)),
        };
        Ok(Self {
            session: session.to_owned(),
            host,
            client,
        })
    }

    /// TR-25.
    pub(crate) async fn snapshot(&self) -> anyhow::Result<ToolRecoverySnapshot> {
        match &self.client {
            Some(client) => self.answer(client.get(self.url("tool-recovery"))).await,
            None => self
                .host
                .tool_recovery_snapshot(&Selector::of(&self.session))
                .await
                .map_err(in_words),
        }
    }

    /// TR-29.
    pub(crate) async fn resolve(
        &self,
        request: ActionRequest,
    ) -> anyhow::Result<ToolRecoverySnapshot> {
        match &self.client {
            Some(client) => {
                let url = self.url("tool-recovery");
                self.answer(client.post(url).json(&request)).await
            }
            None => self
                .host
                .resolve_tool_recovery(&Selector::of(&self.session), request, "cli")
                .await
                .map_err(in_words),
        }
    }

    /// Waits until no turn and no retry runs.
    pub(crate) async fn until_idle(&self) -> anyhow::Result<()> {
        loop {
            let status: Status = match &self.client {
                Some(client) => self.answer(client.get(self.url("status"))).await?,
                None => self
                    .host
                    .status(&Selector::of(&self.session))
                    .await
                    .map_err(in_words)?,
            };
            if !status.running {
                return Ok(());
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// What runs without a turn.
    pub(crate) async fn jobs(&self) -> anyhow::Result<Vec<Job>> {
        match &self.client {
            Some(client) => self.answer(client.get(self.url("jobs"))).await,
            None => self
                .host
                .jobs(&Selector::of(&self.session))
                .await
                .map_err(in_words),
        }
    }

    /// Stops one, and waits until it is gone. Answers what is left.
    pub(crate) async fn stop(&self, id: &str) -> anyhow::Result<Vec<Job>> {
        let request = CancelJob { id: id.to_owned() };
        match &self.client {
            Some(client) => {
                let url = self.url("jobs/cancel");
                self.send(client.post(url).json(&request)).await?;
            }
            None => self
                .host
                .cancel_job(&Selector::of(&self.session), request)
                .await
                .map_err(in_words)?,
        }
        loop {
            let left = self.jobs().await?;
            if left.iter().all(|job| job.id != id) {
                return Ok(left);
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Gives the session back; what runs goes on under its supervisor.
    pub(crate) async fn release(self) {
        self.host.release().await;
    }

    fn url(&self, path: &str) -> String {
        // The name is for the header alone; the connection goes to the socket.
        format!("http://localhost/{path}?session={}", self.session)
    }

    async fn answer<T: DeserializeOwned>(
        &self,
        request: reqwest::RequestBuilder,
    ) -> anyhow::Result<T> {
        let answer = self.send(request).await?;
        answer
            .json()
            .await
            .context("the holder's answer can't be read; look at the present state and go on")
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> anyhow::Result<reqwest::Response> {
        let answer = request.send().await.map_err(|error| {
            if error.is_connect() {
                anyhow!(
                    "the program that holds the session does not answer at its local socket; \
                     nothing was changed; end it, or resolve the call there [holder_unreachable]"
                )
            } else {
                anyhow!(
                    "the holder's answer did not come ({error}); whether it acted is not known; \
                     look with `list` before anything else [holder_silent]"
                )
            }
        })?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        let status = answer.status();
        match answer.json::<Refusal>().await {
            Ok(Refusal { code, message }) => Err(anyhow!("{message} [{code}]")),
            Err(_) => Err(anyhow!(
                "the holder answered {status}; nothing more is known; look with `list`"
            )),
        }
    }
}

/// An error as it comes over the socket.
#[derive(Deserialize)]
struct Refusal {
    code: String,
    message: String,
}

fn in_words(error: ApiError) -> anyhow::Error {
    anyhow!("{} [{}]", error.message, error.code)
}

#[cfg(unix)]
fn client(socket: &Path) -> anyhow::Result<reqwest::Client> {
    reqwest::Client::builder()
        .unix_socket(socket)
        .no_proxy()
        .timeout(ANSWER_TIME)
        .build()
        .context("a connection to the holder can't be made; nothing was changed")
}

#[cfg(not(unix))]
fn client(_: &Path) -> anyhow::Result<reqwest::Client> {
    let _ = ANSWER_TIME;
    anyhow::bail!(
        "another program holds the session, and this system has no local socket to ask it by; \
         nothing was changed; do it in that program [unsupported_platform]"
    )
}
