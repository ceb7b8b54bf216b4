//! Commands that go on as jobs (TR-50): what their call is answered with, what a model is told of
//! their end, what a restart makes of them and of a wish to stop one.

use std::collections::BTreeMap;

use holdfast_domain::recovery::barrier::{self, InFlight};
use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_domain::recovery::process::{EndedBy, ProcessEvidence};
use holdfast_domain::recovery::restart::{Findings, JOB_SCOPE, JOB_STOP, RestartStep, plan};
use holdfast_domain::transcript::notes::host_note;
use holdfast_domain::transcript::record::{JobStarted, Record, ResultSource, ToolResult};

use crate::log::{Log, changed, exit, receipt, result};

const ANSWER: &str = "[started as job a]\n";

fn job_started(attempt_id: &str) -> Record {
    JobStarted {
        attempt_id: attempt_id.to_owned(),
        by: JobStarted::MODEL.to_owned(),
        text: ANSWER.to_owned(),
    }
    .into()
}

fn with_call() -> Log {
    let mut log = Log::new();
    log.turn("t1")
        .says("t1", 1, &[("c1", "shell")])
        .receipt("a", "c1", "shell")
        .start("a");
    log
}

fn with_job() -> Log {
    let mut log = with_call();
    log.add(job_started("a"));
    log
}

fn ended(code: i32) -> Record {
    ToolResult {
        exit: Some(exit("a", EndedBy::Itself, Some(code))),
        ..result("a", AttemptState::Failed, "printed\n")
    }
    .into()
}

#[test]
fn tr_50_the_call_is_answered_and_the_attempt_is_open() {
    let log = with_job();
    let attempt = log.session.attempt("a").unwrap();
    assert_eq!(attempt.state, AttemptState::Running);
    assert_eq!(log.session.answer("c1").as_deref(), Some(ANSWER));
    assert!(host_note(&log.session).is_none(), "nothing new is known");
    // In flight it blocks nothing; without an executor it does.
    let owned = InFlight::from(["a".to_owned()]);
    assert!(barrier::refuses(log.session.attempts(), &owned, None).is_none());
    assert!(barrier::refuses(log.session.attempts(), &InFlight::new(), None).is_some());
}

#[test]
fn tr_15_the_real_end_never_changes_the_answer_and_is_told_once() {
    let mut log = with_job();
    log.add(ended(3));
    assert_eq!(
        log.session.attempt("a").unwrap().state,
        AttemptState::Failed
    );
    assert_eq!(log.session.answer("c1").as_deref(), Some(ANSWER));
    let note = host_note(&log.session).unwrap();
    assert!(
        note.text.starts_with("[host note] What became of jobs"),
        "{}",
        note.text
    );
    assert!(
        note.text.contains("job a") && note.text.contains("exit status 3"),
        "{}",
        note.text
    );
    log.add(note);
    assert!(host_note(&log.session).is_none());
}

#[test]
fn tr_50_an_unknown_end_is_told_and_holds_the_barrier_and_a_later_result_is_told_again() {
    let mut log = with_job();
    log.add(changed("a", AttemptState::Unknown));
    assert!(barrier::refuses(log.session.attempts(), &InFlight::new(), None).is_some());
    let note = host_note(&log.session).unwrap();
    assert!(
        note.text.contains("its outcome is unknown"),
        "{}",
        note.text
    );
    log.add(note);
    assert!(host_note(&log.session).is_none());
    log.add(ended(0));
    assert!(
        host_note(&log.session)
            .unwrap()
            .text
            .contains("exit status 0")
    );
}

#[test]
fn tr_50_a_job_of_what_has_its_result_or_its_answer_changes_neither() {
    let mut log = with_call();
    log.add(ended(3));
    let answer = log.session.answer("c1");
    log.add(job_started("a"));
    assert_eq!(log.session.answer("c1"), answer);
    assert!(log.session.attempt("a").unwrap().background.is_none());
}

/// What a restart makes of a stop that was not answered, by what it finds of the job.
fn settled(evidence: Option<ProcessEvidence>) -> (AttemptState, String) {
    let mut log = with_job();
    let mut stop = receipt("s", "c2", JOB_STOP);
    stop.identity.resource_scope = format!("{JOB_SCOPE}a");
    log.add(stop);
    log.start("s");
    let processes: BTreeMap<_, _> = evidence
        .into_iter()
        .map(|found| ("a".to_owned(), found))
        .collect();
    let findings = Findings {
        processes,
        ..Findings::default()
    };
    let result = plan(&log.session, &findings)
        .into_iter()
        .find_map(|step| match step {
            RestartStep::Record(Record::ToolResult(result)) if result.attempt_id == "s" => {
                Some(result)
            }
            _ => None,
        })
        .unwrap();
    assert_eq!(result.source, ResultSource::Recovered);
    (result.state, result.text)
}

#[test]
fn tr_14_a_stop_that_was_not_answered_is_settled_by_the_job_itself() {
    let exited = ProcessEvidence::Exited {
        receipt: exit("a", EndedBy::Stop, None),
        output_incomplete: false,
        alive: false,
    };
    let (state, text) = settled(Some(exited));
    assert_eq!(state, AttemptState::Completed, "{text}");
    let (state, text) = settled(Some(ProcessEvidence::Running { pid: 7 }));
    assert_eq!(state, AttemptState::Failed);
    assert!(text.contains("is not known"), "{text}");
    // Nothing could be looked at: nothing is claimed.
    assert_eq!(settled(None).0, AttemptState::Failed);
}
