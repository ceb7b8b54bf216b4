//! `write_file` and `edit_file`: publication, and what can come between.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, mpsc};

use holdfast_domain::recovery::file::FileVerdict;
use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_tools::{Checkpoint, inspect_file};
use serde_json::json;

use crate::place::Place;

const NONE: Vec<PathBuf> = Vec::new();

#[tokio::test]
async fn a_write_creates_folders_and_says_what_it_did() {
    let place = Place::new();
    let outcome = place
        .call(
            "write_file",
            json!({"path": "a/b/c.txt", "content": "new\n"}),
        )
        .await;
    assert_eq!(outcome.state, AttemptState::Completed, "{}", outcome.text);
    assert_eq!(outcome.text, "created a/b/c.txt, now 4 bytes\n");
    assert_eq!(
        outcome.diff.as_deref(),
        Some("--- /dev/null\n+++ b/a/b/c.txt\n@@ -0,0 +1 @@\n+new\n")
    );
    assert_eq!(place.get("a/b/c.txt"), "new\n");
    let edits = json!([{"old_text": "n", "new_text": "N"}, {"old_text": "New", "new_text": "Old"}]);
    let outcome = place
        .call("edit_file", json!({"path": "a/b/c.txt", "edits": edits}))
        .await;
    assert_eq!(outcome.text, "changed a/b/c.txt, now 4 bytes\n");
    assert_eq!(place.get("a/b/c.txt"), "Old\n");
    assert_eq!(place.leftovers(), NONE);
}

#[test]
fn edits_that_can_t_be_applied_say_which_and_why() {
    let place = Place::new();
    place.put("a", "one\n  two\ntwo\n");
    for (edits, code, words) in [
        (
            json!([{"old_text": "one", "new_text": "1"}, {"old_text": "three", "new_text": "3"}]),
            "edit_not_found",
            "edit 2 of 2",
        ),
        (
            json!([{"old_text": "two", "new_text": "2"}]),
            "edit_ambiguous",
            "occurs 2 times (lines 2, 3)",
        ),
        (
            json!([{"old_text": "one\ntwo", "new_text": "2"}]),
            "edit_not_found",
            "lines 1–2 differ from it only in white space",
        ),
        (
            json!([{"old_text": "", "new_text": "2"}]),
            "edit_empty",
            "old_text is empty",
        ),
        (
            json!([{"old_text": "one", "new_text": "one"}]),
            "edit_same",
            "are the same",
        ),
    ] {
        let refusal = place
            .prepare("edit_file", &json!({"path": "a", "edits": edits}))
            .unwrap_err();
        assert_eq!(refusal.code, code);
        assert!(refusal.message.contains(words), "{}", refusal.message);
        assert!(
            refusal.message.ends_with("nothing was written"),
            "{}",
            refusal.message
        );
    }
    let edits = json!([{"old_text": "x", "new_text": "y"}]);
    assert_eq!(
        place.refusal("edit_file", &json!({"path": "none", "edits": edits})),
        "not_found"
    );
    assert_eq!(place.get("a"), "one\n  two\ntwo\n");
}

#[tokio::test]
async fn tr_37_nothing_is_published_over_another_state() {
    let place = Place::new();
    place.put("a", "old");
    // Between the question and the write, and between the steps of the write.
    for step in [
        "",
        "before_temp",
        "after_create",
        "after_temp",
        "after_sync",
        "after_claim",
    ] {
        for (path, existed) in [("a", true), (&*format!("new{step}"), false)] {
            place.put("a", "old");
            let prepared = place
                .prepare("write_file", &json!({"path": path, "content": "mine"}))
                .unwrap();
            let mut context = place.context(&prepared);
            let file = place.path(path);
            let change = move || fs::write(&file, "theirs").unwrap();
            if step.is_empty() {
                change();
            } else {
                context.checkpoint = Checkpoint::at(move |name| {
                    if name == step {
                        change();
                    }
                });
            }
            let outcome = place.execute(&prepared, &context).await;
            assert_eq!(outcome.state, AttemptState::Failed, "{step} {existed}");
            assert_eq!(outcome.code, Some("file_changed"), "{step} {existed}");
            assert_eq!(outcome.effect_summary, "");
            assert_eq!(place.get(path), "theirs");
            assert_eq!(place.leftovers(), NONE);
        }
    }
    let prepared = place
        .prepare("write_file", &json!({"path": "a", "content": "mine"}))
        .unwrap();
    fs::remove_file(place.path("a")).unwrap();
    let outcome = place.execute(&prepared, &place.context(&prepared)).await;
    assert_eq!(outcome.code, Some("file_changed"));
    assert!(!place.path("a").exists());
}

#[tokio::test]
async fn c39_a_stop_at_any_step_leaves_the_file_whole_and_the_result_true() {
    let steps = [
        "before_temp",
        "after_create",
        "after_temp",
        "after_sync",
        "after_claim",
        "after_rename",
        "after_folder_sync",
    ];
    for step in steps {
        let place = Place::new();
        place.put("a", "old content");
        let prepared = place
            .prepare("write_file", &json!({"path": "a", "content": "new"}))
            .unwrap();
        let mut context = place.context(&prepared);
        let cancel = context.cancel.clone();
        let seen = Arc::new(Mutex::new(Vec::new()));
        context.checkpoint = Checkpoint::at({
            let seen = Arc::clone(&seen);
            move |name| {
                seen.lock().unwrap().push(name.to_owned());
                if name == step {
                    cancel.cancel();
                }
            }
        });
        let outcome = place.execute(&prepared, &context).await;
        let seen = seen.lock().unwrap().clone();
        assert!(
            steps
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .starts_with(&seen)
        );
        let verdict = inspect_file(prepared.file.as_ref().unwrap(), &place.workspace).verdict;
        if ["after_claim", "after_rename", "after_folder_sync"].contains(&step) {
            assert_eq!(outcome.state, AttemptState::Completed, "{step}");
            assert_eq!(
                (place.get("a").as_str(), verdict),
                ("new", FileVerdict::Satisfied)
            );
        } else {
            assert_eq!(
                (outcome.state, outcome.code),
                (AttemptState::Failed, Some("cancelled"))
            );
            assert_eq!(
                (place.get("a").as_str(), verdict),
                ("old content", FileVerdict::Unchanged)
            );
            assert_eq!(seen.last().unwrap(), step);
        }
        assert_eq!(place.leftovers(), NONE, "{step}");
    }
}

/// A reader that looks all the time sees the old content or the new, whole.
#[cfg(unix)] // Wine refuses to rename over a file that is open elsewhere; Windows was never asked.
#[tokio::test]
async fn c39_a_reader_never_sees_half_a_write() {
    let place = Place::new();
    let contents = ["a".repeat(40_000), "b".repeat(30_000)];
    place.put("file", &contents[0]);
    let (stop, stopped) = mpsc::channel::<()>();
    let path = place.path("file");
    let reader = std::thread::spawn({
        let contents = contents.clone();
        move || {
            let mut seen = 0;
            while stopped.try_recv() == Err(mpsc::TryRecvError::Empty) {
                let text = fs::read_to_string(&path).unwrap();
                assert!(contents.contains(&text), "{} bytes", text.len());
                seen += 1;
            }
            seen
        }
    });
    for n in 1..crate::place::scaled(40) as usize + 1 {
        let arguments = json!({"path": "file", "content": contents[n % 2]});
        let outcome = place.call("write_file", arguments).await;
        assert_eq!(outcome.state, AttemptState::Completed, "{}", outcome.text);
    }
    drop(stop);
    assert!(reader.join().unwrap() > 0);
}

#[tokio::test]
async fn a_dropped_call_finishes_its_write() {
    let place = Place::new();
    let prepared = place
        .prepare("write_file", &json!({"path": "a", "content": "new"}))
        .unwrap();
    let mut context = place.context(&prepared);
    let (reached, wait) = mpsc::channel();
    context.checkpoint = Checkpoint::at(move |name| {
        if name == "after_folder_sync" {
            reached.send(()).unwrap();
        }
    });
    {
        let call = place.execute(&prepared, &context);
        tokio::pin!(call);
        // Polled once, so that it begins.
        tokio::select! {
            biased;
            _ = &mut call => {}
            () = std::future::ready(()) => {}
        }
    }
    tokio::task::spawn_blocking(move || wait.recv_timeout(crate::place::PATIENCE).unwrap())
        .await
        .unwrap();
    assert_eq!(place.get("a"), "new");
}

#[tokio::test]
async fn a_rename_that_fails_is_a_clean_failure() {
    let place = Place::new();
    place.put("a", "old");
    let prepared = place
        .prepare("write_file", &json!({"path": "new", "content": "mine"}))
        .unwrap();
    let mut context = place.context(&prepared);
    let target = place.path("new");
    context.checkpoint = Checkpoint::at(move |name| {
        if name == "after_sync" {
            fs::create_dir(&target).unwrap();
        }
    });
    let outcome = place.execute(&prepared, &context).await;
    assert_eq!(
        (outcome.state, outcome.code),
        (AttemptState::Failed, Some("file_changed"))
    );
    assert_eq!(outcome.effect_summary, "");
    assert!(place.path("new").is_dir());
    assert_eq!(place.leftovers(), NONE);
}

#[cfg(unix)]
#[tokio::test]
async fn mode_bits_are_kept_and_a_read_only_file_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    place.put("script", "#!/bin/sh\n");
    let mode =
        |bits| fs::set_permissions(place.path("script"), fs::Permissions::from_mode(bits)).unwrap();
    mode(0o751);
    let outcome = place
        .call(
            "write_file",
            json!({"path": "script", "content": "#!/bin/sh\ntrue\n"}),
        )
        .await;
    assert_eq!(outcome.state, AttemptState::Completed, "{}", outcome.text);
    let now = fs::metadata(place.path("script"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(now & 0o7777, 0o751);
    mode(0o444);
    let arguments = json!({"path": "script", "content": "x"});
    assert_eq!(place.refusal("write_file", &arguments), "file_read_only");
}

/// A small file system of its own, which can be full or read-only. Needs the right to mount.
#[cfg(target_os = "linux")]
mod mounted {
    use super::*;
    use std::process::Command;

    struct Mount(PathBuf);

    impl Mount {
        fn new(path: PathBuf) -> Option<Self> {
            fs::create_dir(&path).unwrap();
            let mount = Command::new("mount")
                .args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"])
                .arg(&path)
                .output();
            let done = mount.is_ok_and(|output| output.status.success());
            if !done {
                eprintln!("SKIPPED: this system does not let the test mount a tmpfs");
            }
            done.then_some(Self(path))
        }

        fn make_read_only(&self) {
            let status = Command::new("mount")
                .args(["-o", "remount,ro"])
                .arg(&self.0)
                .status();
            assert!(status.unwrap().success());
        }
    }

    impl Drop for Mount {
        fn drop(&mut self) {
            let _ = Command::new("umount").arg("-l").arg(&self.0).status();
        }
    }

    #[tokio::test]
    async fn a_full_disk_and_a_read_only_one_are_clean_failures() {
        let place = Place::new();
        let Some(mount) = Mount::new(place.path("disk")) else {
            return;
        };
        fs::write(place.path("disk/a"), "old").unwrap();
        let big = "x".repeat(2 * 1024 * 1024);
        let outcome = place
            .call("write_file", json!({"path": "disk/a", "content": big}))
            .await;
        assert_eq!(
            (outcome.state, outcome.code),
            (AttemptState::Failed, Some("io_failed"))
        );
        assert!(
            outcome.text.contains("nothing was written"),
            "{}",
            outcome.text
        );
        assert_eq!(place.get("disk/a"), "old");
        assert_eq!(place.leftovers(), NONE);

        mount.make_read_only();
        let outcome = place
            .call("write_file", json!({"path": "disk/a", "content": "new"}))
            .await;
        assert_eq!(
            (outcome.state, outcome.code),
            (AttemptState::Failed, Some("io_failed"))
        );
        assert_eq!(outcome.effect_summary, "");
        assert_eq!(place.get("disk/a"), "old");
    }
}
