//! RS-15: what is shown of a state, for the whole table and for every pair of its rows.

use holdfast_domain::runtime::display::{Shown, shown, shown_at_rest};
use holdfast_domain::runtime::snapshot::{Activity, Outcome, Phase, RuntimeState, Sample, derive};

fn idle() -> RuntimeState {
    RuntimeState {
        runtime_epoch: "e".repeat(32),
        revision: 1,
        ..derive(&Sample::default())
    }
}

type Fact = (&'static str, fn(&mut RuntimeState), Shown);

/// The table from its top to its bottom: a fact, and what it alone shows.
const TABLE: &[Fact] = &[
    (
        "finishing",
        |state| state.phase = Phase::Finishing,
        Shown::Finishing,
    ),
    (
        "stop asked for",
        |state| state.cancel_requested = true,
        Shown::Cancelling,
    ),
    (
        "a person is asked",
        |state| state.pending_prompt = true,
        Shown::WaitingConfirmation,
    ),
    (
        "executing",
        |state| {
            if state.phase != Phase::Finishing {
                state.phase = Phase::Executing;
            }
            state.running = true;
            state.activity = Activity::Streaming;
        },
        Shown::Streaming,
    ),
    (
        "jobs",
        |state| state.background_jobs = 2,
        Shown::BackgroundJobs,
    ),
    (
        "the turn failed",
        |state| state.outcome = Outcome::Error,
        Shown::Error,
    ),
];

#[test]
fn rs_15_each_fact_alone_shows_its_word() {
    for (name, set, word) in TABLE {
        let mut state = idle();
        set(&mut state);
        assert_eq!(shown(&state), *word, "{name}");
    }
    assert_eq!(shown(&idle()), Shown::Idle);
    for (outcome, word) in [
        (Outcome::Error, Shown::Error),
        (Outcome::Paused, Shown::Paused),
        (Outcome::AwaitingDelivery, Shown::AwaitingDelivery),
        (Outcome::None, Shown::Idle),
    ] {
        assert_eq!(shown(&RuntimeState { outcome, ..idle() }), word);
    }
}

#[test]
fn rs_15_the_higher_of_any_facts_is_shown() {
    // Every subset of the facts; bits from the top of the table.
    for subset in 0_u32..1 << TABLE.len() {
        let mut state = idle();
        let mut expected = Shown::Idle;
        for (index, (_, set, word)) in TABLE.iter().enumerate().rev() {
            if subset & (1 << index) != 0 {
                set(&mut state);
                expected = *word;
            }
        }
        assert_eq!(shown(&state), expected, "subset {subset:b}: {state:?}");
    }
}

#[test]
fn rs_15_executing_says_whether_text_arrives() {
    let mut state = derive(&Sample {
        running: true,
        turn_id: "t".to_owned(),
        ..Sample::default()
    });
    assert_eq!(shown(&state), Shown::Thinking);
    state.activity = Activity::Streaming;
    assert_eq!(shown(&state), Shown::Streaming);
    state.activity = Activity::None;
    assert_eq!(shown(&state), Shown::Thinking, "executing is never nothing");
}

#[test]
fn rs_09_a_closed_session_shows_no_activity() {
    let state = derive(&Sample {
        closed: true,
        running: true,
        finishing: true,
        cancelling: true,
        streaming: true,
        turn_id: "t".to_owned(),
        ..Sample::default()
    });
    assert_eq!(shown(&state), Shown::Idle);
    let with_jobs = RuntimeState {
        background_jobs: 1,
        ..state
    };
    assert_eq!(shown(&with_jobs), Shown::BackgroundJobs);
}

#[test]
fn rs_15_a_session_at_rest_shows_what_its_log_says() {
    assert_eq!(shown_at_rest(true, true), Shown::WaitingConfirmation);
    assert_eq!(shown_at_rest(false, true), Shown::Error);
    assert_eq!(shown_at_rest(false, false), Shown::Idle);
}
