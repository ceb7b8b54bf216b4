//! The reducer against the vectors that the TypeScript one reads too.

use holdfast_domain::runtime::reduce::{Incoming, Store, Verdict};
use serde::Deserialize;

use crate::vectors;

#[derive(Deserialize)]
struct Vectors {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    rule: String,
    steps: Vec<Step>,
    end: Option<End>,
    accepted: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Step {
    epoch: String,
    revision: u64,
    content: String,
    authoritative: bool,
    inner_malformed: bool,
    verdict: Verdict,
}

#[derive(Deserialize)]
struct End {
    epoch: String,
    revision: u64,
    content: String,
}

fn incoming(step: &Step) -> Incoming<'_, String> {
    Incoming {
        epoch: &step.epoch,
        revision: step.revision,
        inner_malformed: step.inner_malformed,
        authoritative: step.authoritative,
        content: &step.content,
    }
}

#[test]
fn rs_23_every_vector_gives_its_verdicts_and_its_end() {
    let cases = vectors::read::<Vectors>("runtime-reducer").cases;
    assert!(cases.len() >= 40);
    assert!(cases.iter().any(|case| case.rule == "C14"));
    for case in cases {
        let mut store = Store::default();
        for (place, step) in case.steps.iter().enumerate() {
            let before = store.clone();
            let verdict = store.reduce(incoming(step));
            assert_eq!(verdict, step.verdict, "{}, step {place}", case.name);
            if verdict != Verdict::Accepted {
                assert_eq!(store, before, "{}, step {place}", case.name);
            }
        }
        let end = case.end.map(|end| (end.epoch, end.revision, end.content));
        assert_eq!(store.held, end, "{}", case.name);
        assert_eq!(store.version, case.accepted, "{}", case.name);
    }
}

#[test]
fn rs_24_a_read_counts_only_if_the_store_has_not_changed_since_it_began() {
    let content = |text: &str| text.to_owned();
    let mut store = Store::default();
    let read = |store: &mut Store<String>, began: u64, epoch: &str, text: &str| {
        let authoritative = store.version == began;
        store.reduce(Incoming {
            epoch,
            revision: 1,
            inner_malformed: false,
            authoritative,
            content: &content(text),
        })
    };
    let began = store.version;
    assert_eq!(read(&mut store, began, "e1", "one"), Verdict::Accepted);
    // A read begins, another read adopts a new epoch, the first one's answer comes late.
    let began = store.version;
    assert_eq!(read(&mut store, began, "e2", "two"), Verdict::Accepted);
    assert_eq!(read(&mut store, began, "e1", "late"), Verdict::Conflict);
    assert_eq!(store.held, Some(("e2".to_owned(), 1, "two".to_owned())));
    // A duplicate or a conflict is no change.
    let began = store.version;
    assert_eq!(read(&mut store, began, "e2", "two"), Verdict::Duplicate);
    assert_eq!(store.version, began);
}
