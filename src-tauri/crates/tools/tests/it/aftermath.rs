//! What a write leaves for a host that comes after, and what that host concludes. The executor here
//! lives on in a thread; the deaths are in the acceptance tests.

use std::fs;
use std::sync::{Arc, Mutex, mpsc};

use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_domain::recovery::publication::PublicationEvidence;
use holdfast_tools::{Checkpoint, Context, Interrupted, Prepared, ToolOutcome, finish_write};
use serde_json::json;

use crate::place::{PATIENCE, Place};

/// The host that comes after.
fn look(
    place: &Place,
    prepared: &Prepared,
    context: &Context,
    same_boot: bool,
) -> PublicationEvidence {
    Interrupted {
        intent: prepared.file.as_ref().unwrap(),
        attempt_id: &context.attempt_id,
        effects_root: &context.effects_root,
        same_boot,
    }
    .look(&place.workspace)
}

fn a_write(place: &Place) -> (Prepared, Context) {
    let prepared = place
        .prepare("write_file", &json!({"path": "dir/a", "content": "new"}))
        .unwrap();
    let context = place.context(&prepared);
    (prepared, context)
}

fn is_open(evidence: &PublicationEvidence, words: &str) -> bool {
    matches!(evidence, PublicationEvidence::Open { reason } if reason.contains(words))
}

#[cfg(unix)] // Elsewhere a file has no identity that a later look could know it by.
#[tokio::test]
async fn tr_14_a_write_that_another_host_ruled_out_is_not_published() {
    for step in ["before_temp", "after_create", "after_temp", "after_sync"] {
        let place = Place::new();
        place.put("dir/a", "old");
        let (prepared, mut context) = a_write(&place);
        let seen = Arc::new(Mutex::new(None));
        context.checkpoint = Checkpoint::at({
            let (seen, prepared, other) = (Arc::clone(&seen), prepared.clone(), context.clone());
            let workspace = place.workspace.clone();
            move |name| {
                if name == step {
                    let evidence = Interrupted {
                        intent: prepared.file.as_ref().unwrap(),
                        attempt_id: &other.attempt_id,
                        effects_root: &other.effects_root,
                        same_boot: true,
                    }
                    .look(&workspace);
                    *seen.lock().unwrap() = Some(evidence);
                }
            }
        });
        let outcome = place.execute(&prepared, &context).await;
        assert_eq!(
            *seen.lock().unwrap(),
            Some(PublicationEvidence::Absent),
            "{step}"
        );
        assert_eq!(outcome.code, Some("publication_fenced"), "{step}");
        assert_eq!(place.get("dir/a"), "old");
        assert!(place.leftovers().is_empty());
        // Asked again, it says the same.
        assert_eq!(
            look(&place, &prepared, &context, true),
            PublicationEvidence::Absent
        );
        assert!(is_open(
            &look(&place, &prepared, &context, false),
            "started again"
        ));
    }
}

#[cfg(unix)] // Elsewhere a file has no identity that a later look could know it by.
#[tokio::test]
async fn tr_37_a_write_under_way_is_not_judged() {
    for step in ["after_claim", "after_rename", "after_folder_sync"] {
        let place = Place::new();
        place.put("dir/a", "old");
        let (prepared, mut context) = a_write(&place);
        let (reached, wait) = mpsc::channel();
        let (go_on, held) = mpsc::channel::<()>();
        let held = Mutex::new(held);
        context.checkpoint = Checkpoint::at(move |name| {
            if name == step {
                reached.send(()).unwrap();
                held.lock().unwrap().recv_timeout(PATIENCE).unwrap();
            }
        });
        let (write, evidence) = tokio::join!(place.execute(&prepared, &context), async {
            tokio::task::spawn_blocking(move || wait.recv_timeout(PATIENCE).unwrap())
                .await
                .unwrap();
            let evidence = look(&place, &prepared, &context, true);
            go_on.send(()).unwrap();
            evidence
        });
        assert!(is_open(&evidence, "under way"), "{step}: {evidence:?}");
        assert_eq!(write.state, AttemptState::Completed);
        let done = PublicationEvidence::Done {
            bytes: 3,
            diff: prepared.diff.clone(),
            changed_since: false,
        };
        // At any time, also after the machine was started again.
        for same_boot in [true, false] {
            assert_eq!(look(&place, &prepared, &context, same_boot), done);
        }
    }
}

#[cfg(unix)] // Elsewhere a file has no identity that a later look could know it by.
#[tokio::test]
async fn tr_09_a_write_that_failed_behind_its_claim_is_known_not_to_have_happened() {
    let place = Place::new();
    place.put("dir/a", "old");
    let (prepared, mut context) = a_write(&place);
    context.checkpoint = Checkpoint::at({
        let file = place.path("dir/a");
        move |name| {
            if name == "after_claim" {
                fs::write(&file, "theirs").unwrap();
            }
        }
    });
    let outcome = place.execute(&prepared, &context).await;
    assert_eq!(outcome.code, Some("file_changed"));
    assert!(place.leftovers().is_empty());
    assert_eq!(
        look(&place, &prepared, &context, true),
        PublicationEvidence::Absent
    );
    assert!(is_open(
        &look(&place, &prepared, &context, false),
        "started again"
    ));
}

#[cfg(unix)] // Elsewhere a file has no identity that a later look could know it by.
#[tokio::test]
async fn tr_17_what_proves_a_write_is_the_file_and_not_its_content() {
    let place = Place::new();
    place.put("dir/a", "old");
    let (prepared, context) = a_write(&place);
    place.execute(&prepared, &context).await;
    // Written to in place: still the file that was put there.
    place.put("dir/a", "by hand");
    let is_done = |evidence: &PublicationEvidence, changed: bool| matches!(evidence, PublicationEvidence::Done { changed_since, .. } if *changed_since == changed);
    let evidence = look(&place, &prepared, &context, true);
    if fs::metadata(place.path("dir/a")).unwrap().created().is_ok() {
        assert!(is_done(&evidence, true), "{evidence:?}");
    } else {
        eprintln!("SKIPPED in part: this file system has no time of birth");
        assert!(is_open(&evidence, "something else"));
    }
    // Another file with the right content: nobody can say.
    place.put("copy", "new");
    fs::rename(place.path("copy"), place.path("dir/a")).unwrap();
    assert!(is_open(
        &look(&place, &prepared, &context, true),
        "something else"
    ));
    fs::remove_file(place.path("dir/a")).unwrap();
    assert!(is_open(
        &look(&place, &prepared, &context, true),
        "something else"
    ));
    fs::remove_dir(place.path("dir")).unwrap();
    assert!(is_open(
        &look(&place, &prepared, &context, true),
        "something else"
    ));
    // A damaged claim, and one of another attempt.
    let claim = context
        .effects_root
        .join(&context.attempt_id)
        .join("publish");
    let text = fs::read_to_string(&claim).unwrap();
    fs::write(&claim, text.replace(&context.attempt_id, "another")).unwrap();
    assert!(is_open(
        &look(&place, &prepared, &context, true),
        "another attempt"
    ));
    fs::write(&claim, "{").unwrap();
    assert!(is_open(
        &look(&place, &prepared, &context, true),
        "can't be read"
    ));
}

#[test]
fn tr_18_a_found_write_has_the_words_of_a_live_one() {
    let place = Place::new();
    let (prepared, _) = a_write(&place);
    let intent = prepared.file.as_ref().unwrap();
    let finish = |changed| -> ToolOutcome {
        finish_write(intent, &prepared.subject, 3, prepared.diff.clone(), changed)
    };
    assert_eq!(finish(false).text, "created dir/a, now 3 bytes\n");
    assert_eq!(finish(false).diff, prepared.diff);
    assert!(finish(true).text.contains("has changed the file since"));
}

#[tokio::test]
async fn c39_what_a_crash_leaves_is_found_by_the_attempt_and_removed() {
    let place = Place::new();
    place.put("dir/a", "old");
    let (prepared, context) = a_write(&place);
    let remove = |attempt_id: &str| {
        Interrupted {
            intent: prepared.file.as_ref().unwrap(),
            attempt_id,
            effects_root: &context.effects_root,
            same_boot: true,
        }
        .remove_leftover(&place.workspace)
        .unwrap()
    };
    assert!(!remove(&context.attempt_id));
    let temporary = format!("dir/.holdfast-{}.tmp", context.attempt_id);
    place.put(&temporary, "half");
    assert!(!remove("another"));
    assert!(remove(&context.attempt_id));
    assert!(place.leftovers().is_empty());
    assert_eq!(place.get("dir/a"), "old");
}
