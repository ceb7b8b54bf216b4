//! What an exit receipt and a file's content mean.

use holdfast_domain::recovery::file::{FileIntent, FileVerdict, verify};
use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_domain::recovery::process::{EndedBy, ExitReceipt, TreeProof, outcome_of};

use crate::log::{exit, process};

const ASKED: [EndedBy; 4] = [
    EndedBy::Stop,
    EndedBy::Timeout,
    EndedBy::HostLoss,
    EndedBy::External,
];

#[test]
fn tr_09_an_end_by_itself_is_a_result_whatever_lives_on() {
    for proof in [TreeProof::Full, TreeProof::Group, TreeProof::None] {
        for survivors in [vec![], vec![process(7, "daemon")]] {
            let ended = |code, signal| {
                outcome_of(&ExitReceipt {
                    signal,
                    tree_proof: proof,
                    survivors: survivors.clone(),
                    ..exit("a", EndedBy::Itself, code)
                })
            };
            assert_eq!(ended(Some(0), None).state, AttemptState::Completed);
            for code in [1, 2, 127, 255, -1] {
                assert_eq!(ended(Some(code), None).state, AttemptState::Failed);
            }
            assert_eq!(ended(None, Some(9)).state, AttemptState::Failed);
            assert_eq!(ended(None, None).state, AttemptState::Failed);
        }
    }
}

#[test]
fn tr_09_a_command_that_could_not_be_started_says_so() {
    let outcome = outcome_of(&ExitReceipt {
        spawn_error: Some("no such file".to_owned()),
        ..exit("a", EndedBy::Itself, None)
    });
    assert_eq!(outcome.state, AttemptState::Failed);
    assert_eq!(outcome.effect_summary, "the command could not be started");
}

#[test]
fn tr_11_an_asked_end_with_a_proven_tree_is_interrupted() {
    for ended_by in ASKED {
        for code in [None, Some(0), Some(143)] {
            let outcome = outcome_of(&exit("a", ended_by, code));
            assert_eq!(outcome.state, AttemptState::Interrupted);
            assert_eq!(outcome.effect_summary, "effects may be partial");
        }
    }
}

#[test]
fn tr_10_an_asked_end_that_is_not_proven_is_unknown() {
    for ended_by in ASKED {
        for tree_proof in [TreeProof::Group, TreeProof::None] {
            let outcome = outcome_of(&ExitReceipt {
                tree_proof,
                ..exit("a", ended_by, Some(0))
            });
            assert_eq!(outcome.state, AttemptState::Unknown);
            assert!(outcome.effect_summary.contains("not proven"));
        }
    }
}

#[test]
fn c38_a_process_that_may_not_be_signalled_is_named_and_the_outcome_unknown() {
    for ended_by in ASKED {
        for tree_proof in [TreeProof::Full, TreeProof::Group, TreeProof::None] {
            let outcome = outcome_of(&ExitReceipt {
                tree_proof,
                stragglers: vec![process(41, "sudo"), process(42, "sleep")],
                ..exit("a", ended_by, None)
            });
            assert_eq!(outcome.state, AttemptState::Unknown);
            assert!(
                outcome
                    .effect_summary
                    .contains("sudo (pid 41), sleep (pid 42)")
            );
            assert!(!outcome.effect_summary.contains("was stopped"));
        }
    }
}

fn intent(before: &str, after: &str, existed: bool) -> FileIntent {
    FileIntent {
        version: 1,
        path: "f".to_owned(),
        resolved_path: "/w/f".to_owned(),
        before: before.to_owned(),
        after: after.to_owned(),
        encoding: "utf-8".to_owned(),
        existed,
    }
}

#[test]
fn tr_17_verification_speaks_of_the_file_as_it_is_now() {
    use FileVerdict::{Conflict, Satisfied, Unchanged, Unknown};
    let changed = intent("b", "a", true);
    assert_eq!(verify(&changed, Ok(Some("a"))), Satisfied);
    assert_eq!(verify(&changed, Ok(Some("b"))), Unchanged);
    assert_eq!(verify(&changed, Ok(Some("x"))), Conflict);
    assert_eq!(verify(&changed, Ok(None)), Conflict);
    assert_eq!(verify(&changed, Err(())), Unknown);

    let created = intent("", "a", false);
    assert_eq!(verify(&created, Ok(Some("a"))), Satisfied);
    assert_eq!(verify(&created, Ok(None)), Unchanged);
    assert_eq!(verify(&created, Ok(Some("x"))), Conflict);
    // A file that did not exist has no digest, also not an empty one.
    assert_eq!(verify(&created, Ok(Some(""))), Conflict);
    assert_eq!(verify(&created, Err(())), Unknown);

    let same = intent("a", "a", true);
    assert_eq!(verify(&same, Ok(Some("a"))), Satisfied);
    assert_eq!(verify(&same, Ok(None)), Conflict);
}
