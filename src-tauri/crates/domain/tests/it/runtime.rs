//! The runtime snapshot: its fields, its derivation, its revisions.

use std::collections::BTreeSet;

use holdfast_domain::runtime::display::{Shown, shown};
use holdfast_domain::runtime::snapshot::{
    Activity, Commits, MAX_REVISION, Outcome, Phase, RuntimeState, Sample, TurnStatus, derive,
};
use serde_json::{Value, json};

fn commits(sample: &Sample) -> Commits {
    Commits::new("e".repeat(32), "session-id:1".to_owned(), sample)
}

fn executing() -> Sample {
    Sample {
        running: true,
        turn_id: "t1".to_owned(),
        turn_event_seq: 10,
        ..Sample::default()
    }
}

#[test]
fn rs_04_every_field_is_explicit_and_there_is_no_other() {
    let state = commits(&Sample::default()).current().clone();
    assert_eq!(
        serde_json::to_value(&state).unwrap(),
        json!({
            "schemaVersion": 1,
            "runtimeEpoch": "e".repeat(32),
            "revision": 1,
            "phase": "idle",
            "running": false,
            "turnId": "",
            "turnStatus": "",
            "turnEventSeq": 0,
            "pendingPrompt": false,
            "cancelRequested": false,
            "cancellable": false,
            "backgroundJobs": 0,
            "activity": "",
            "unresolved": 0,
            "outcome": "",
        })
    );
}

#[test]
fn rs_04_the_words_of_every_value() {
    let words = |values: Vec<Value>| values;
    assert_eq!(
        words(vec![
            json!(Phase::Idle),
            json!(Phase::Executing),
            json!(Phase::Finishing),
            json!(Phase::Closed)
        ]),
        ["idle", "executing", "finishing", "closed"]
    );
    assert_eq!(
        words(vec![
            json!(TurnStatus::None),
            json!(TurnStatus::InProgress),
            json!(TurnStatus::Completed),
            json!(TurnStatus::Failed),
            json!(TurnStatus::Cancelled),
            json!(TurnStatus::Interrupted)
        ]),
        [
            "",
            "in_progress",
            "completed",
            "failed",
            "cancelled",
            "interrupted"
        ]
    );
    assert_eq!(
        words(vec![
            json!(Activity::None),
            json!(Activity::Streaming),
            json!(Activity::Thinking)
        ]),
        ["", "streaming", "thinking"]
    );
    assert_eq!(
        words(vec![
            json!(Outcome::None),
            json!(Outcome::Error),
            json!(Outcome::Paused),
            json!(Outcome::AwaitingDelivery)
        ]),
        ["", "error", "paused", "awaiting_delivery"]
    );
}

#[test]
fn rs_05_active_work_is_running_a_question_or_a_job() {
    for bits in 0..8u64 {
        let state = RuntimeState {
            running: bits & 1 > 0,
            pending_prompt: bits & 2 > 0,
            background_jobs: bits >> 2,
            ..commits(&Sample::default()).current().clone()
        };
        assert_eq!(state.active_work(), bits > 0);
    }
}

fn valid(value: &Value) -> bool {
    serde_json::from_value::<RuntimeState>(value.clone()).is_ok_and(|state| state.is_valid())
}

#[test]
fn rs_03_finishing_is_what_the_owner_says_and_nothing_that_is_guessed() {
    for bits in 0_u32..1 << 8 {
        let sample = Sample {
            closed: bits & 1 > 0,
            running: bits & 2 > 0,
            finishing: bits & 4 > 0,
            cancelling: bits & 8 > 0,
            streaming: bits & 16 > 0,
            pending_prompt: bits & 32 > 0,
            turn_id: "t1".to_owned(),
            // Neither an end that is stored nor one that is missing makes it so.
            turn_end: if bits & 64 > 0 { "completed" } else { "" }.to_owned(),
            background_jobs: u64::from(bits >> 7),
            ..Sample::default()
        };
        let said = sample.finishing && !sample.running && !sample.closed;
        let state = derive(&sample);
        assert_eq!(state.phase == Phase::Finishing, said, "{sample:?}");
        assert_eq!(shown(&state) == Shown::Finishing, said, "{sample:?}");
    }
}

#[test]
fn rs_03_a_missing_field_is_unknown_and_not_zero() {
    let sound = json!(commits(&executing()).current());
    for field in sound.as_object().unwrap().keys() {
        let mut without = sound.clone();
        without.as_object_mut().unwrap().remove(field);
        assert!(!valid(&without), "without {field}");
    }
}

#[test]
fn rs_06_a_count_that_no_page_can_hold_is_refused() {
    let sound = json!(commits(&executing()).current());
    for field in ["turnEventSeq", "backgroundJobs", "unresolved"] {
        for (count, is_valid) in [(MAX_REVISION, true), (MAX_REVISION + 1, false)] {
            let mut changed = sound.clone();
            changed[field] = json!(count);
            assert_eq!(valid(&changed), is_valid, "{field} {count}");
        }
    }
}

#[test]
fn rs_06_what_is_not_a_snapshot_is_refused() {
    let sound = json!(commits(&executing()).current());
    assert!(valid(&sound));
    for (field, values) in [
        (
            "schemaVersion",
            vec![json!(0), json!(2), json!(-1), json!("1"), json!(null)],
        ),
        ("runtimeEpoch", vec![json!(""), json!(7), json!(null)]),
        (
            "revision",
            vec![
                json!(0),
                json!(-1),
                json!(MAX_REVISION + 1),
                json!(1.5),
                json!("1"),
            ],
        ),
        (
            "phase",
            vec![json!("cancelling"), json!(""), json!("Idle"), json!(1)],
        ),
        ("running", vec![json!(1), json!("true"), json!(null)]),
        ("turnId", vec![json!(1), json!(null)]),
        ("turnStatus", vec![json!("done"), json!(null)]),
        ("turnEventSeq", vec![json!(-1), json!("1")]),
        ("pendingPrompt", vec![json!(0)]),
        ("cancelRequested", vec![json!(0)]),
        ("cancellable", vec![json!("")]),
        ("backgroundJobs", vec![json!(-1), json!(0.5), json!(null)]),
        ("activity", vec![json!("waiting_input"), json!(false)]),
        ("unresolved", vec![json!(-1), json!(true)]),
        ("outcome", vec![json!("bad"), json!(null)]),
    ] {
        for value in values {
            let mut changed = sound.clone();
            changed[field] = value;
            assert!(!valid(&changed), "{changed}");
        }
        let mut without = sound.clone();
        without.as_object_mut().unwrap().remove(field);
        assert!(!valid(&without), "without {field}");
    }
    for revision in [1, 2, MAX_REVISION] {
        let mut changed = sound.clone();
        changed["revision"] = json!(revision);
        assert!(valid(&changed));
    }
    let mut more = sound;
    more["queueDepth"] = json!([1]);
    assert!(valid(&more), "unknown fields are ignored");
}

#[test]
fn rs_09_rs_13_the_whole_truth_table() {
    let mut seen = BTreeSet::new();
    for bits in 0..64u32 {
        let flag = |place: u32| bits & (1 << place) != 0;
        let [closed, running, finishing, cancelling, prompt, streaming] =
            [flag(0), flag(1), flag(2), flag(3), flag(4), flag(5)];
        let state = derive(&Sample {
            closed,
            running,
            finishing,
            cancelling,
            pending_prompt: prompt,
            streaming,
            ..executing()
        });
        let phase = match (closed, running, finishing) {
            (true, _, _) => Phase::Closed,
            (false, true, _) => Phase::Executing,
            (false, false, true) => Phase::Finishing,
            (false, false, false) => Phase::Idle,
        };
        let activity = match (phase, streaming) {
            (Phase::Executing, true) => Activity::Streaming,
            (Phase::Executing, false) => Activity::Thinking,
            (Phase::Closed | Phase::Finishing | Phase::Idle, _) => Activity::None,
        };
        assert_eq!(state.phase, phase, "{bits:06b}");
        assert_eq!(state.activity, activity, "{bits:06b}");
        assert_eq!(state.running, running || finishing, "{bits:06b}");
        assert_eq!(state.pending_prompt, prompt);
        assert_eq!(state.cancel_requested, cancelling);
        assert_eq!(
            state.cancellable,
            !finishing && (running || prompt || cancelling),
            "{bits:06b}"
        );
        assert_eq!(state.turn_status, TurnStatus::InProgress);
        assert_eq!(state.outcome, Outcome::None);
        seen.insert(format!("{phase:?} {activity:?} {}", state.cancellable));
    }
    assert!(seen.len() >= 8, "{seen:?}");
}

#[test]
fn rs_09_a_close_during_finishing_brings_no_activity_back() {
    let mut sample = Sample {
        streaming: true,
        finishing: true,
        running: true,
        closed: true,
        ..executing()
    };
    let mut commits = commits(&sample);
    for (running, finishing) in [(false, true), (true, false), (false, false)] {
        (sample.running, sample.finishing) = (running, finishing);
        commits.commit(&sample);
        assert_eq!(commits.current().phase, Phase::Closed);
        assert_eq!(commits.current().activity, Activity::None);
    }
}

#[test]
fn rs_04_a_turns_end_is_its_status() {
    for (end, status, outcome) in [
        ("", TurnStatus::InProgress, Outcome::None),
        ("completed", TurnStatus::Completed, Outcome::None),
        ("failed", TurnStatus::Failed, Outcome::Error),
        ("cancelled", TurnStatus::Cancelled, Outcome::None),
        ("interrupted", TurnStatus::Interrupted, Outcome::None),
    ] {
        let state = derive(&Sample {
            turn_id: "t1".to_owned(),
            turn_end: end.to_owned(),
            ..Sample::default()
        });
        assert_eq!((state.turn_status, state.outcome), (status, outcome));
    }
    let none = derive(&Sample {
        turn_end: "failed".to_owned(),
        ..Sample::default()
    });
    assert_eq!(none.turn_status, TurnStatus::None);
}

#[test]
fn rs_11_a_hundred_thousand_deltas_commit_nothing() {
    let mut sample = Sample {
        streaming: true,
        ..executing()
    };
    let mut commits = commits(&sample);
    let before = commits.current().clone();
    for _ in 0..100_000 {
        sample.turn_event_seq += 1;
        assert_eq!(commits.commit(&sample), None);
    }
    assert_eq!(commits.current(), &before);
    assert_eq!(commits.current().turn_event_seq, 10);
    // The next change of meaning carries the place of that moment.
    sample.streaming = false;
    let next = commits.commit(&sample).unwrap();
    assert_eq!((next.revision, next.turn_event_seq), (2, 100_010));
}

#[test]
fn rs_11_every_change_of_meaning_is_one_revision() {
    type Change = fn(&mut Sample);
    let changes: [Change; 10] = [
        |sample| sample.streaming = true,
        |sample| sample.pending_prompt = true,
        |sample| sample.cancelling = true,
        |sample| sample.background_jobs = 2,
        |sample| sample.unresolved = 1,
        |sample| sample.turn_id = "t2".to_owned(),
        |sample| sample.turn_end = "failed".to_owned(),
        |sample| (sample.running, sample.finishing) = (false, true),
        |sample| sample.finishing = false,
        |sample| sample.closed = true,
    ];
    let mut sample = executing();
    let mut commits = commits(&sample);
    for (place, change) in changes.into_iter().enumerate() {
        change(&mut sample);
        let next = commits.commit(&sample).cloned();
        assert_eq!(next.map(|state| state.revision), Some(place as u64 + 2));
        assert_eq!(commits.commit(&sample), None, "the same again");
    }
    assert_eq!(commits.current().revision, 11);
}

#[test]
fn rs_08_another_binding_begins_a_new_epoch_at_revision_1() {
    let mut commits = commits(&executing());
    commits.commit(&Sample::default());
    assert_eq!(commits.current().revision, 2);
    assert_eq!(commits.current().runtime_epoch, "e".repeat(32));
    commits.rebind(
        "f".repeat(32),
        "session-id:2".to_owned(),
        &Sample::default(),
    );
    assert_eq!(commits.binding(), "session-id:2");
    let state = commits.current();
    assert_eq!(state.runtime_epoch, "f".repeat(32));
    assert_eq!(state.revision, 1);
    assert_eq!(state.phase, Phase::Idle);
}
