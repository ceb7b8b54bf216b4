//! Acceptance 4 as a walk that every verifier takes before it counts: unknown, absent and not fenced,
//! absent and fenced, the stable key, the repeated retry. The world around the tool is the test's.
//!
//! To add a tool with a verifier: a [`World`] for it, its name in [`WALKED`], a test that walks.

use holdfast_api::recovery::RetryHint;
use holdfast_domain::recovery::admission::Action;
use holdfast_domain::recovery::attempt::InspectionState;
use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_domain::transcript::outbound::OutboundMessage;
use holdfast_domain::transcript::record::{Receipt, Record};

use crate::bench::{Bench, Session, request};

/// Built-in tools whose verifier walks here.
pub(crate) const WALKED: [&str; 2] = ["edit_file", "write_file"];

/// How the world stands towards an unresolved attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stand {
    /// It can't be looked at.
    Dark,
    /// The effect is not there, and may still come.
    AbsentOpen,
    /// The effect is not there and can't come any more.
    AbsentFenced,
    /// The effect is there.
    Present,
}

/// A tool's surroundings.
pub(crate) trait World {
    /// A session with one unresolved attempt of the tool, which has had no effect.
    async fn begin(&self, bench: &Bench) -> (Session, String);
    /// Brings the world there. `false`: that can't be for this tool.
    fn make(&self, stand: Stand, attempt: &str) -> bool;
    /// How often the effect happened.
    fn effects(&self) -> usize;
}

/// What the snapshot says of an attempt's retry.
pub(crate) async fn hint(session: &Session, attempt: &str) -> RetryHint {
    session
        .recovery()
        .await
        .calls
        .iter()
        .find(|call| call.identity.attempt_id == attempt)
        .unwrap()
        .retry
        .clone()
        .unwrap()
}

/// The present inspection's id and state.
async fn looked(session: &Session, attempt: &str) -> (String, InspectionState) {
    let (id, snapshot) = session.inspect(attempt).await;
    let call = snapshot
        .calls
        .iter()
        .find(|call| call.identity.attempt_id == attempt)
        .unwrap();
    (id, call.inspection_state.unwrap())
}

/// The receipts of the log, in order.
pub(crate) fn receipts(session: &Session) -> Vec<Receipt> {
    session
        .log()
        .into_iter()
        .filter_map(|record| match record {
            Record::Receipt(receipt) => Some(receipt),
            _ => None,
        })
        .collect()
}

/// TR-05 (8)…(10): the three lines of a retry stand together, in their order.
fn check_order(session: &Session, original: &str, retry: &str) {
    let log = session.log();
    let at = log
        .iter()
        .position(|record| matches!(record, Record::Superseded(_)))
        .unwrap();
    let Record::Receipt(receipt) = &log[at - 1] else {
        panic!("no receipt before {:?}", log[at]);
    };
    assert_eq!(receipt.identity.attempt_id, retry);
    let Record::Superseded(superseded) = &log[at] else {
        panic!("{:?}", log[at]);
    };
    assert_eq!(
        (superseded.attempt_id.as_str(), superseded.by.as_str()),
        (original, retry)
    );
    let Record::ToolStarted(started) = &log[at + 1] else {
        panic!("no start behind {:?}", log[at]);
    };
    assert_eq!(started.attempt_id, retry);
}

/// A retry that is refused: nothing is stored and nothing runs.
pub(crate) async fn refused(session: &Session, attempt: &str, inspection: &str, code: &str) {
    let before = session.log_bytes();
    let error = session
        .act(Action::Retry, attempt, inspection)
        .await
        .unwrap_err();
    assert_eq!(
        (error.status, error.code.as_str()),
        (409, code),
        "{error:?}"
    );
    assert!(error.snapshot.is_some(), "with the present snapshot");
    assert_eq!(session.log_bytes(), before);
    assert!(!session.status().await.running);
}

/// The whole walk. `bench` has retry on, and the tool.
pub(crate) async fn walk(bench: &Bench, world: &impl World) {
    let (mut session, attempt) = world.begin(bench).await;
    assert_eq!(world.effects(), 0, "the walk begins without the effect");
    assert_eq!(hint(&session, &attempt).await.code, "not_inspected");
    refused(&session, &attempt, "", "not_inspected").await;

    // Unknown, and absent without a fence: nothing is proven, nothing runs.
    for stand in [Stand::Dark, Stand::AbsentOpen] {
        if !world.make(stand, &attempt) {
            continue;
        }
        let (inspection, state) = looked(&session, &attempt).await;
        assert_eq!(state, InspectionState::Unknown, "{stand:?}");
        assert_eq!(hint(&session, &attempt).await.code, "not_fenced");
        refused(&session, &attempt, &inspection, "not_fenced").await;
        assert_eq!(world.effects(), 0, "{stand:?}");
    }

    // Absent and fenced.
    assert!(world.make(Stand::AbsentFenced, &attempt));
    let (inspection, state) = looked(&session, &attempt).await;
    assert_eq!(state, InspectionState::AbsentFenced);
    assert!(hint(&session, &attempt).await.allowed);
    // It has to be so now, whatever an inspection once said.
    assert!(world.make(Stand::Dark, &attempt));
    refused(&session, &attempt, &inspection, "not_fenced").await;
    assert!(world.make(Stand::AbsentFenced, &attempt));

    let seen = session.recovery().await;
    let again = request(&seen, Action::Retry, &attempt, &inspection);
    let reply = session.resolve(again.clone()).await.unwrap();
    assert!(
        reply
            .calls
            .iter()
            .all(|call| call.identity.attempt_id != attempt)
    );
    assert_eq!(reply.statistics.retried, 1);
    session.idle().await;
    assert_eq!(world.effects(), 1);

    // The stable key, fresh ids, the same everything else.
    let receipts = receipts(&session);
    assert_eq!(receipts.len(), 2, "{receipts:#?}");
    let (first, second) = (&receipts[0], &receipts[1]);
    assert_eq!(first.idempotency_key, second.idempotency_key);
    assert_eq!(first.identity.triple(), second.identity.triple());
    assert_ne!(first.identity.attempt_id, second.identity.attempt_id);
    let fresh = second.identity.call_id.strip_prefix("retry_").unwrap();
    assert!(fresh.len() == 32 && fresh.bytes().all(|byte| byte.is_ascii_hexdigit()));
    check_order(&session, &attempt, &second.identity.attempt_id);

    // The repeated retry: an old request runs nothing, nor does a new one for the same attempt.
    let late = session.resolve(again.clone()).await.unwrap_err();
    assert_eq!(late.code, "snapshot_changed");
    refused(&session, &attempt, &inspection, "attempt_resolved").await;
    let retried = session.tools().await.pop().unwrap();
    assert_eq!(
        (retried.state.as_str(), retried.id.as_str()),
        (
            AttemptState::Completed.as_str(),
            second.identity.call_id.as_str()
        )
    );
    assert_eq!(retried.retry_of.as_deref(), Some(attempt.as_str()));
    session.host.close().await;
    session = bench.of(bench.host(), &session.id);
    assert_eq!(
        session.resolve(again).await.unwrap_err().code,
        "snapshot_changed"
    );
    refused(&session, &attempt, &inspection, "attempt_resolved").await;
    assert_eq!(world.effects(), 1);
    check_told(bench, &mut session, &second.identity.call_id).await;
}

/// The result is local-only; the model hears of it by one note, once.
async fn check_told(bench: &Bench, session: &mut Session, retry_call: &str) {
    session.turn("and now?").await;
    session.turn("and later?").await;
    let notes: Vec<String> = session
        .items()
        .await
        .into_iter()
        .filter(|item| item.kind == "note")
        .filter_map(|item| item.text)
        .collect();
    assert_eq!(notes.len(), 1, "{notes:#?}");
    assert!(
        notes[0].contains("run again behind a fence") && notes[0].contains("completed"),
        "{notes:?}"
    );
    let sent = bench.script.requests().pop().unwrap().messages;
    assert!(!serde_json::to_string(&sent).unwrap().contains(retry_call));
    let results = sent
        .iter()
        .filter(|message| matches!(message, OutboundMessage::Tool { .. }))
        .count();
    assert_eq!(results, 1, "the original's own and no other");
}

/// What is there is not run again. A world of its own, since an effect does not go away.
pub(crate) async fn walk_present(bench: &Bench, world: &impl World) {
    let (session, attempt) = world.begin(bench).await;
    assert!(world.make(Stand::Present, &attempt));
    let (inspection, state) = looked(&session, &attempt).await;
    assert!(
        matches!(
            state,
            InspectionState::Present | InspectionState::PostconditionSatisfied
        ),
        "{state:?}"
    );
    assert_eq!(hint(&session, &attempt).await.code, "not_fenced");
    refused(&session, &attempt, &inspection, "not_fenced").await;
    assert_eq!(world.effects(), 1);
    let confirmed = session
        .act(Action::Confirm, &attempt, &inspection)
        .await
        .unwrap();
    assert!(confirmed.calls.is_empty());
    session.host.close().await;
}
