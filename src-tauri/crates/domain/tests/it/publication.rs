//! What a write leaves, and what it proves.

use holdfast_domain::recovery::file::{FileIntent, FileVerdict, verify};
use holdfast_domain::recovery::publication::{
    FileIdentity, Found, PublicationEvidence, PublishClaim, judge,
};
use holdfast_domain::transcript::record::FileCheckpoint;

use crate::log::Log;

pub(crate) fn intent() -> FileIntent {
    FileIntent {
        version: 1,
        path: "a".to_owned(),
        resolved_path: "/w/a".to_owned(),
        before: "before".to_owned(),
        after: "after".to_owned(),
        encoding: "utf-8".to_owned(),
        existed: true,
    }
}

fn file(number: u64, born: Option<u64>) -> FileIdentity {
    FileIdentity {
        device: 1,
        number,
        born,
    }
}

/// Every combination of what can be found, against the rule in words.
#[test]
fn tr_17_c39_what_a_claim_proves() {
    let identities = [None, Some(file(1, Some(7))), Some(file(1, None))];
    let targets = [
        None,
        Some(file(1, Some(7))),
        Some(file(1, Some(8))),
        Some(file(1, None)),
        Some(file(2, Some(7))),
    ];
    let flags = [false, true];
    let mut walked = 0;
    for identity in identities {
        let claim = PublishClaim::Executor {
            attempt_id: "a".to_owned(),
            identity,
            bytes: 3,
            diff: Some("diff".to_owned()),
        };
        for target in targets {
            for (temporary, satisfied, withdrawn, same_boot) in flags
                .iter()
                .flat_map(|a| flags.iter().map(move |b| (*a, *b)))
                .flat_map(|(a, b)| flags.iter().map(move |c| (a, b, *c)))
                .flat_map(|(a, b, c)| flags.iter().map(move |d| (a, b, c, *d)))
            {
                let found = Found {
                    target,
                    temporary,
                    satisfied,
                    withdrawn,
                    same_boot,
                };
                walked += 1;
                let name = format!("{identity:?} {found:?}");
                match judge(&claim, found) {
                    PublicationEvidence::Done {
                        bytes,
                        diff,
                        changed_since,
                    } => {
                        assert!(identity.is_some() && identity == target, "{name}");
                        let born = identity.is_some_and(|identity| identity.born.is_some());
                        assert!(born || satisfied, "{name}");
                        assert_eq!((bytes, diff.as_deref()), (3, Some("diff")));
                        assert_eq!(changed_since, !satisfied);
                    }
                    PublicationEvidence::Absent => {
                        assert!(same_boot && (withdrawn || temporary), "{name}");
                        let is_ours = identity.is_some() && identity == target;
                        assert!(withdrawn || !is_ours, "{name}");
                        assert!(withdrawn || identity.is_some() || !satisfied, "{name}");
                    }
                    PublicationEvidence::Open { reason } => {
                        let is_ours = identity.is_some() && identity == target;
                        let plainly_absent = identity.is_some() && temporary && !is_ours;
                        assert!(!same_boot || !(withdrawn || plainly_absent), "{name}");
                        assert!(!reason.is_empty());
                    }
                }
                let void = PublishClaim::Void {
                    attempt_id: "a".to_owned(),
                };
                let is_absent = judge(&void, found) == PublicationEvidence::Absent;
                assert_eq!(is_absent, same_boot, "{name}");
            }
        }
    }
    assert_eq!(walked, 3 * 5 * 16);
}

#[test]
fn tr_17_the_four_verdicts() {
    let existing = intent();
    let new = FileIntent {
        before: String::new(),
        existed: false,
        ..intent()
    };
    for (intent, now, verdict) in [
        (&existing, Ok(Some("after")), FileVerdict::Satisfied),
        (&existing, Ok(Some("before")), FileVerdict::Unchanged),
        (&existing, Ok(Some("other")), FileVerdict::Conflict),
        (&existing, Ok(None), FileVerdict::Conflict),
        (&existing, Err(()), FileVerdict::Unknown),
        (&new, Ok(Some("after")), FileVerdict::Satisfied),
        (&new, Ok(None), FileVerdict::Unchanged),
        (&new, Ok(Some("")), FileVerdict::Conflict),
        (&new, Err(()), FileVerdict::Unknown),
    ] {
        assert_eq!(verify(intent, now), verdict, "{} {now:?}", intent.existed);
    }
}

#[test]
fn tr_17_the_first_writer_of_a_file_stays_its_first() {
    let mut log = Log::new();
    let checkpoint = |attempt_id: &str, path: &str| FileCheckpoint {
        attempt_id: attempt_id.to_owned(),
        resolved_path: path.to_owned(),
        log_sha256: "0f".repeat(32),
    };
    for (attempt_id, path) in [("a", "/w/a"), ("b", "/w/a"), ("c", "/w/c")] {
        log.add(checkpoint(attempt_id, path));
    }
    let bound: Vec<_> = log.session.file_checkpoints.values().collect();
    assert_eq!(bound, [&checkpoint("a", "/w/a"), &checkpoint("c", "/w/c")]);
}
