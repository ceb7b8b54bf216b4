//! Two sources, one reducer: RS-30…RS-36.

use holdfast_domain::runtime::observed::{Observed, status_of};
use holdfast_domain::runtime::remote::{ReadAnswer, RemoteSessions, RemoteVerdict};
use holdfast_domain::runtime::snapshot::{RuntimeState, Sample, derive};
use proptest::prelude::*;
use serde_json::json;

const PATH: &str = "session-id:1";

fn state(epoch: &str, revision: u64, jobs: u64) -> RuntimeState {
    RuntimeState {
        runtime_epoch: epoch.to_owned(),
        revision,
        background_jobs: jobs,
        ..derive(&Sample::default())
    }
}

fn list(rows: &[(&str, RuntimeState)]) -> ReadAnswer {
    ReadAnswer::List(
        rows.iter()
            .map(|(path, state)| ((*path).to_owned(), Some(state.clone())))
            .collect(),
    )
}

/// A bound session that a read confirmed.
fn confirmed(first: RuntimeState) -> (RemoteSessions, u64) {
    let mut remote = RemoteSessions::default();
    remote.bind(PATH);
    let generation = remote.connect();
    let begun = remote.begin_read();
    assert!(!remote.finish_read(begun, &list(&[(PATH, first)])));
    assert!(remote.is_synced());
    (remote, generation)
}

fn held(remote: &RemoteSessions) -> (u64, u64, bool) {
    let known = &remote.sessions()[PATH];
    match &known.state {
        Some(Observed::Snapshot(state)) => (state.revision, state.background_jobs, known.synced),
        other => panic!("{other:?}"),
    }
}

#[test]
fn rs_30_what_only_the_stream_knows_waits_for_a_read() {
    let mut remote = RemoteSessions::default();
    remote.bind(PATH);
    let generation = remote.connect();
    let first = state("a", 1, 0);
    assert_eq!(
        remote.stream(generation, PATH, Some(&first)),
        RemoteVerdict::Deferred
    );
    assert_eq!(remote.sessions()[PATH].state, None);
    assert_eq!(
        remote.stream(generation, "session-id:2", Some(&first)),
        RemoteVerdict::Deferred
    );
    let (mut remote, generation) = confirmed(first);
    assert_eq!(
        remote.stream(generation, PATH, Some(&state("b", 1, 5))),
        RemoteVerdict::Deferred
    );
    assert_eq!(held(&remote), (1, 0, true));
    let begun = remote.begin_read();
    remote.finish_read(begun, &list(&[(PATH, state("b", 1, 5))]));
    assert_eq!(held(&remote), (1, 5, true));
}

#[test]
fn rs_31_c14_within_an_epoch_the_revision_decides() {
    let (mut remote, generation) = confirmed(state("a", 6, 0));
    let mut verdicts = Vec::new();
    for (revision, jobs) in [(7, 0), (5, 0), (7, 0), (7, 1), (7, 1), (7, 2), (8, 0)] {
        verdicts.push(remote.stream(generation, PATH, Some(&state("a", revision, jobs))));
    }
    assert_eq!(
        verdicts,
        [
            RemoteVerdict::Accepted,
            RemoteVerdict::Stale,
            RemoteVerdict::Duplicate,
            RemoteVerdict::Conflict { resync: true },
            // One read for each contradiction.
            RemoteVerdict::Conflict { resync: false },
            RemoteVerdict::Conflict { resync: true },
            RemoteVerdict::Accepted,
        ]
    );
    assert_eq!(
        (remote.counters().stale, remote.counters().conflicts),
        (1, 3)
    );
}

#[test]
fn rs_31_a_contradiction_is_unconfirmed_until_a_read_settles_it() {
    let (mut remote, generation) = confirmed(state("a", 7, 0));
    remote.stream(generation, PATH, Some(&state("a", 7, 1)));
    assert_eq!(held(&remote), (7, 0, false));
    let begun = remote.begin_read();
    assert!(!remote.finish_read(begun, &list(&[(PATH, state("a", 7, 0))])));
    assert_eq!(held(&remote), (7, 0, true));
    // A host that goes on contradicting itself stays unconfirmed, and is not asked for ever.
    let begun = remote.begin_read();
    assert!(remote.finish_read(begun, &list(&[(PATH, state("a", 7, 1))])));
    let begun = remote.begin_read();
    assert!(!remote.finish_read(begun, &list(&[(PATH, state("a", 7, 1))])));
    assert_eq!(held(&remote), (7, 0, false));
}

#[test]
fn rs_31_a_fresh_read_that_knows_less_confirms_nothing() {
    let (mut remote, _) = confirmed(state("a", 7, 0));
    let begun = remote.begin_read();
    remote.finish_read(begun, &list(&[(PATH, state("a", 3, 4))]));
    assert_eq!(held(&remote), (7, 0, false));
    assert_eq!(remote.counters().stale, 1);
}

#[test]
fn rs_32_a_late_read_overwrites_nothing_that_came_meanwhile() {
    // A newer state of the stream.
    let (mut remote, generation) = confirmed(state("a", 6, 0));
    let begun = remote.begin_read();
    remote.stream(generation, PATH, Some(&state("a", 8, 2)));
    remote.finish_read(begun, &list(&[(PATH, state("a", 7, 1))]));
    assert_eq!(held(&remote), (8, 2, true));
    // The same across an epoch: which is later can't be told, so it is read again.
    let begun = remote.begin_read();
    remote.stream(generation, PATH, Some(&state("a", 9, 3)));
    assert!(remote.finish_read(begun, &list(&[(PATH, state("b", 1, 1))])));
    assert_eq!(held(&remote), (9, 3, true));
    // A binding that is newer than the question.
    let mut remote = RemoteSessions::default();
    remote.connect();
    let begun = remote.begin_read();
    remote.bind(PATH);
    assert!(remote.finish_read(begun, &list(&[(PATH, state("a", 1, 0))])));
    assert_eq!(remote.sessions()[PATH].state, None);
    assert!(!remote.is_synced());
}

#[test]
fn rs_32_an_earlier_connection_says_nothing_any_more() {
    let (mut remote, old) = confirmed(state("a", 6, 0));
    let begun = remote.begin_read();
    let new = remote.connect();
    assert_ne!(old, new);
    assert!(!remote.finish_read(begun, &list(&[(PATH, state("a", 9, 9))])));
    assert_eq!(
        remote.stream(old, PATH, Some(&state("a", 9, 9))),
        RemoteVerdict::Fenced
    );
    assert_eq!(held(&remote), (6, 0, false));
    remote.disconnect();
    assert_eq!(
        remote.stream(new, PATH, Some(&state("a", 9, 9))),
        RemoteVerdict::Fenced
    );
}

#[test]
fn rs_35_what_cannot_be_read_doubts_all_and_prunes_nothing() {
    let (mut remote, generation) = confirmed(state("a", 6, 1));
    let begun = remote.begin_read();
    assert!(remote.finish_read(begun, &ReadAnswer::Garbled), "at once");
    assert_eq!(held(&remote), (6, 1, false));
    let begun = remote.begin_read();
    assert!(
        !remote.finish_read(begun, &ReadAnswer::Failed),
        "with backoff"
    );
    assert_eq!(held(&remote), (6, 1, false));
    // One row alone.
    let begun = remote.begin_read();
    let rows = ReadAnswer::List(vec![(PATH.to_owned(), None)]);
    assert!(remote.finish_read(begun, &rows));
    assert_eq!(held(&remote), (6, 1, false));
    assert_eq!(remote.counters().failures, 3);
    // A frame.
    assert_eq!(
        remote.stream(generation, PATH, None),
        RemoteVerdict::Invalid
    );
}

#[test]
fn rs_35_a_path_that_is_missing_is_unknown_while_a_tab_shows_it_and_else_gone() {
    let (mut remote, generation) = confirmed(state("a", 6, 1));
    let begun = remote.begin_read();
    let both = [(PATH, state("a", 6, 1)), ("session-id:2", state("c", 1, 0))];
    remote.finish_read(begun, &list(&both));
    assert_eq!(remote.sessions().len(), 2);
    // It changed since the question: it stays.
    let begun = remote.begin_read();
    remote.stream(generation, "session-id:2", Some(&state("c", 2, 0)));
    remote.finish_read(begun, &list(&[(PATH, state("a", 6, 1))]));
    assert_eq!(remote.sessions().len(), 2);
    let begun = remote.begin_read();
    remote.finish_read(begun, &list(&[]));
    assert_eq!(held(&remote), (6, 1, false), "unknown, and not idle");
    assert_eq!(remote.sessions().len(), 1);
}

#[test]
fn rs_36_facts_stay_while_disconnected_and_a_read_adopts_the_new_epoch() {
    let (mut remote, _) = confirmed(state("a", 6, 1));
    remote.disconnect();
    assert_eq!(held(&remote), (6, 1, false));
    assert!(!remote.is_synced());
    let generation = remote.connect();
    // The stream is first; facts go on, and only a read confirms them.
    assert_eq!(
        remote.stream(generation, PATH, Some(&state("a", 7, 2))),
        RemoteVerdict::Accepted
    );
    assert_eq!(held(&remote), (7, 2, false));
    let begun = remote.begin_read();
    remote.finish_read(begun, &list(&[(PATH, state("b", 1, 0))]));
    assert_eq!(held(&remote), (1, 0, true));
}

#[test]
fn rs_34_rs_14_an_older_host_is_read_session_by_session_and_replaced_as_a_whole() {
    let mut remote = RemoteSessions::default();
    remote.bind(PATH);
    remote.connect();
    for running in [true, false, true] {
        let begun = remote.begin_read();
        let observed = status_of(&json!({ "running": running })).unwrap();
        let answer = ReadAnswer::One(PATH.to_owned(), observed.clone());
        assert!(!remote.finish_read(begun, &answer));
        assert_eq!(remote.sessions()[PATH].state, Some(observed));
        assert!(remote.is_synced());
    }
    // After an update of that host its snapshots count.
    let begun = remote.begin_read();
    remote.finish_read(begun, &list(&[(PATH, state("a", 1, 0))]));
    assert_eq!(held(&remote), (1, 0, true));
}

#[derive(Debug, Clone)]
enum Step {
    Connect,
    Disconnect,
    Bind,
    Unbind,
    Ask,
    Stream(u64, u64),
    Answer(usize, Option<(u64, u64)>),
    Garble(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let pair = (0_u64..2, 1_u64..5);
    let step = prop_oneof![
        Just(Step::Connect),
        Just(Step::Disconnect),
        Just(Step::Bind),
        Just(Step::Unbind),
        Just(Step::Ask),
        pair.clone()
            .prop_map(|(epoch, revision)| Step::Stream(epoch, revision)),
        (0_usize..4, proptest::option::of(pair)).prop_map(|(read, row)| Step::Answer(read, row)),
        (0_usize..4).prop_map(Step::Garble),
    ];
    proptest::collection::vec(step, 0..60)
}

proptest! {
    /// Whatever comes in whatever order: within an epoch nothing goes back, nothing is confirmed
    /// without a connection, and facts never turn into nothing while a tab shows them.
    #[test]
    fn rs_30_rs_36_any_order_of_frames_reads_and_connections(steps in steps()) {
        let mut remote = RemoteSessions::default();
        let mut reads = vec![remote.begin_read()];
        let mut generation = 0;
        let honest = |epoch: u64, revision: u64| state(&epoch.to_string(), revision, revision);
        remote.bind(PATH);
        let mut bound = true;
        for step in steps {
            let before = remote.sessions().get(PATH).cloned();
            match step {
                Step::Connect => generation = remote.connect(),
                Step::Disconnect => remote.disconnect(),
                Step::Bind => { remote.bind(PATH); bound = true; }
                Step::Unbind => { remote.unbind(PATH); bound = false; }
                Step::Ask => reads.push(remote.begin_read()),
                Step::Stream(epoch, revision) => {
                    remote.stream(generation, PATH, Some(&honest(epoch, revision)));
                }
                Step::Answer(read, row) => {
                    let begun = reads[read % reads.len()];
                    let rows = row.map(|(epoch, revision)| (PATH, honest(epoch, revision)));
                    remote.finish_read(begun, &list(rows.as_slice()));
                }
                Step::Garble(read) => {
                    let begun = reads[read % reads.len()];
                    remote.finish_read(begun, &ReadAnswer::Garbled);
                }
            }
            let now = remote.sessions().get(PATH);
            if !remote.is_connected() {
                prop_assert!(now.is_none_or(|known| !known.synced));
            }
            let facts = |known: &holdfast_domain::runtime::remote::Known| match &known.state {
                Some(Observed::Snapshot(state)) => Some((state.runtime_epoch.clone(), state.revision)),
                _ => None,
            };
            let (before, now) = (before.as_ref().and_then(facts), now.and_then(facts));
            if let (Some((old_epoch, old)), Some((epoch, new))) = (&before, &now) {
                prop_assert!(old_epoch != epoch || new >= old);
            }
            prop_assert!(before.is_none() || now.is_some() || !bound);
        }
    }
}
