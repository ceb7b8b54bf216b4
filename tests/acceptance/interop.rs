//! A real Reasonix serve, driven by our remote client: what works, what is refused with a clear code,
//! and what such a host itself does not keep. Not part of `npm test`, and compiled with the feature
//! `interop` alone: `npm run test:interop` installs that program and runs these, and docs/WIRE.md quotes
//! what they say.

mod questions;
mod queue;
mod restart;
mod serve;
mod sessions;
mod turns;

use holdfast_api::inbox::{Enqueue, Intent};
use holdfast_api::session::Submit;
use holdfast_api::transcript::TranscriptSnapshot;
use holdfast_api::{ApiError, Selector, SessionHost};
use holdfast_testkit::wait::{SOON, until_asked};

use serve::Serve;

fn message(input: &str, key: &str) -> Submit {
    Submit {
        input: input.to_owned(),
        submission_id: Some(key.to_owned()),
    }
}

fn queued(input: &str, key: &str) -> Enqueue {
    Enqueue {
        input: input.to_owned(),
        intent: Intent::Followup,
        idempotency_key: key.to_owned(),
    }
}

fn code<T: std::fmt::Debug>(answer: Result<T, ApiError>) -> String {
    answer.unwrap_err().code
}

/// The texts of a transcript, oldest first; a call as its name and state.
fn shown(snapshot: &TranscriptSnapshot) -> Vec<String> {
    let items = snapshot.items.iter().rev();
    items
        .map(|item| match &item.tool {
            Some(tool) => format!("{} {}", tool.name, tool.state),
            None => format!(
                "{}: {}",
                item.kind,
                item.text.as_deref().unwrap_or_default()
            ),
        })
        .collect()
}

async fn eventually_shown(serve: &Serve, selector: &Selector, wanted: &str) -> TranscriptSnapshot {
    until_asked(wanted, SOON, async || {
        let snapshot = serve.host.transcript_snapshot(selector).await.unwrap();
        shown(&snapshot)
            .iter()
            .any(|text| text == wanted)
            .then_some(snapshot)
    })
    .await
}
