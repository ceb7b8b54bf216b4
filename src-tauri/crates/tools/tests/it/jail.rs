//! The jail: hostile paths, links, races.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_tools::{Checkpoint, Workspace};
use serde_json::json;

use crate::place::Place;

fn both(place: &Place, path: &str) -> (&'static str, &'static str) {
    (
        place.refusal("read_file", &json!({ "path": path })),
        place.refusal("write_file", &json!({"path": path, "content": "x"})),
    )
}

#[test]
fn paths_that_lead_outside_are_refused() {
    let place = Place::new();
    place.put("dir/a", "inside");
    let secret = place.outside("secret").display().to_string();
    symlink(place.outside(""), place.path("out")).unwrap();
    symlink("../outside/secret", place.path("file")).unwrap();
    symlink("out", place.path("twice")).unwrap();
    symlink("/proc/self/root", place.path("magic")).unwrap();
    for path in [
        "../outside/secret",
        "dir/../../outside/secret",
        &secret,
        "/etc/passwd",
        "/etc/nothing/at/all",
        "/",
        "..",
        "out/secret",
        "out/new",
        "file",
        "twice/secret",
        "magic/etc/passwd",
        &format!("/proc/self/root{secret}"),
        "/proc/self/environ",
        "/etc/passwd",
    ] {
        assert_eq!(
            both(&place, path),
            ("path_outside", "path_outside"),
            "{path}"
        );
    }
    assert_eq!(
        fs::read_to_string(place.outside("secret")).unwrap(),
        "outside secret"
    );
    assert!(!place.outside("new").exists());
}

#[test]
fn paths_that_mean_nothing_are_refused() {
    let place = Place::new();
    symlink("nowhere", place.path("dangling")).unwrap();
    symlink("round", place.path("round")).unwrap();
    for (path, code) in [
        ("", "path_invalid"),
        ("a\u{0}b", "path_invalid"),
        ("none/../a", "path_invalid"),
        ("dangling", "link_dangling"),
        ("dangling/x", "link_dangling"),
        ("round", "io_failed"),
    ] {
        assert_eq!(both(&place, path), (code, code), "{path:?}");
    }
    for path in [".", "dir/", "new/"] {
        let arguments = json!({"path": path, "content": "x"});
        assert_eq!(
            place.refusal("write_file", &arguments),
            "not_a_file",
            "{path}"
        );
    }
}

#[tokio::test]
async fn links_inside_and_absolute_paths_inside_work() {
    let place = Place::new();
    place.put("dir/a", "inside");
    symlink(place.path("dir"), place.path("absolute")).unwrap();
    symlink("dir/a", place.path("link")).unwrap();
    let full = place.path("dir/a").display().to_string();
    for path in ["absolute/a", "link", full.as_str(), "absolute/../dir/a"] {
        let text = place.call("read_file", json!({ "path": path })).await.text;
        assert_eq!(text, "inside", "{path}");
    }
    // A write goes to the file, and the link stays one.
    let outcome = place
        .call("write_file", json!({"path": "link", "content": "new"}))
        .await;
    assert_eq!(outcome.state, AttemptState::Completed, "{}", outcome.text);
    assert_eq!(place.get("dir/a"), "new");
    assert!(
        fs::symlink_metadata(place.path("link"))
            .unwrap()
            .is_symlink()
    );
}

#[test]
fn the_programs_data_is_refused_in_every_way() {
    let place = Place::new();
    symlink(".data", place.path("alias")).unwrap();
    let full = place.path(".data/token").display().to_string();
    for path in [
        ".data/token",
        ".data/new",
        "alias/token",
        "x/../.data/token",
        &full,
    ] {
        let path = path.replace("x/../", "alias/../");
        assert_eq!(
            both(&place, &path),
            ("path_protected", "path_protected"),
            "{path}"
        );
    }
    assert_eq!(
        place.refusal("list_dir", &json!({"path": ".data"})),
        "path_protected"
    );
    assert_eq!(
        place.refusal("glob", &json!({"pattern": "*", "path": ".data"})),
        "path_protected"
    );
    // A workspace in the data is none; data that is made later is refused too.
    let inside = Workspace::open(&place.path(".data"), vec![place.path(".data")]);
    assert_eq!(inside.unwrap_err().code(), "workspace_invalid");
    let later = Workspace::open(&place.path(""), vec![place.path("later/data")]).unwrap();
    fs::create_dir_all(place.path("later/data")).unwrap();
    let refusal = place
        .registry
        .prepare("read_file", r#"{"path":"later/data/x"}"#, &later);
    assert_eq!(refusal.unwrap_err().code, "path_protected");
}

#[test]
fn git_can_be_read_and_not_written() {
    let place = Place::new();
    place.put(".git/config", "[core]\n");
    place.put("sub/.git/hooks/x", "");
    symlink(".git", place.path("alias")).unwrap();
    assert!(
        place
            .prepare("read_file", &json!({"path": ".git/config"}))
            .is_ok()
    );
    for path in [
        ".git/hooks/pre-commit",
        ".git/config",
        "sub/.git/hooks/x",
        "alias/config",
        ".GIT/config",
        "new/.git",
        ".git./x",
        "git~1/x",
        ".g\u{200c}it/x",
    ] {
        let arguments = json!({"path": path, "content": "x"});
        assert_eq!(
            place.refusal("write_file", &arguments),
            "path_protected",
            "{path}"
        );
    }
    assert!(
        place
            .prepare("write_file", &json!({"path": ".gitignore", "content": "x"}))
            .is_ok()
    );
}

#[test]
fn what_is_no_folder_is_no_workspace() {
    let place = Place::new();
    place.put("file", "");
    for path in [place.path("file"), place.path("none"), PathBuf::new()] {
        let error = Workspace::open(&path, Vec::new()).unwrap_err();
        assert_eq!(error.code(), "workspace_invalid");
    }
}

#[tokio::test]
async fn a_workspace_that_was_replaced_is_not_used() {
    let place = Place::new();
    place.put("a", "old");
    let prepared = place
        .prepare("write_file", &json!({"path": "a", "content": "x"}))
        .unwrap();
    fs::rename(place.path(""), place.folder.path().join("moved")).unwrap();
    fs::create_dir(place.path("")).unwrap();
    fs::write(place.path("a"), "old").unwrap();
    assert_eq!(
        place.refusal("read_file", &json!({"path": "a"})),
        "workspace_moved"
    );
    let outcome = place.execute(&prepared, &place.context(&prepared)).await;
    assert_eq!(outcome.code, Some("workspace_moved"));
    assert_eq!(place.get("a"), "old");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn files_that_are_views_of_the_system_are_refused() {
    let place = Place::new();
    let root = Workspace::open(&PathBuf::from("/proc/self"), Vec::new()).unwrap();
    let prepared = place
        .registry
        .prepare("read_file", r#"{"path":"environ"}"#, &root)
        .unwrap();
    let outcome = place
        .registry
        .execute(&prepared, &root, &place.context(&prepared))
        .await;
    assert_eq!(outcome.code, Some("not_a_file"));
}

#[tokio::test]
async fn a_pipe_does_not_hang_the_tools() {
    let place = Place::new();
    let made = std::process::Command::new("mkfifo")
        .arg(place.path("pipe"))
        .status()
        .unwrap();
    assert!(made.success());
    let outcome = place.call("read_file", json!({"path": "pipe"})).await;
    assert_eq!(outcome.code, Some("not_a_file"));
    let arguments = json!({"path": "pipe", "content": "x"});
    assert_eq!(place.refusal("write_file", &arguments), "not_a_file");
    let text = place.call("grep", json!({"pattern": "x"})).await.text;
    assert_eq!(text, "[no line matches]\n");
}

/// The folder of a prepared write is swapped for a link to outside, before the write and at each
/// of its steps.
#[tokio::test]
async fn a_link_that_comes_after_the_check_leads_nowhere() {
    for step in ["", "before_temp", "after_temp", "after_claim"] {
        let place = Place::new();
        place.put("dir/secret", "inside");
        let prepared = place
            .prepare(
                "write_file",
                &json!({"path": "dir/secret", "content": "written"}),
            )
            .unwrap();
        let mut context = place.context(&prepared);
        let (dir, aside, outside) = (place.path("dir"), place.path("aside"), place.outside(""));
        let swap = move || {
            fs::rename(&dir, &aside).unwrap();
            symlink(&outside, &dir).unwrap();
        };
        if step.is_empty() {
            swap();
        } else {
            context.checkpoint = Checkpoint::at(move |name| {
                if name == step {
                    swap();
                }
            });
        }
        let outcome = place.execute(&prepared, &context).await;
        assert_eq!(
            outcome.state,
            AttemptState::Failed,
            "{step}: {}",
            outcome.text
        );
        assert_eq!(
            fs::read_to_string(place.outside("secret")).unwrap(),
            "outside secret"
        );
        assert_eq!(place.get("aside/secret"), "inside", "{step}");
        assert_eq!(
            fs::read_dir(place.outside("")).unwrap().count(),
            1,
            "{step}"
        );
        assert_eq!(place.leftovers(), Vec::<PathBuf>::new(), "{step}");
    }
}

/// A folder and a link to outside change places all the time.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_race_of_links_never_gets_out() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    let place = Place::new();
    place.put("dir/secret", "inside");
    symlink(place.outside(""), place.path("link")).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let swapper = std::thread::spawn({
        let stop = Arc::clone(&stop);
        let (dir, link) = (place.path("dir"), place.path("link"));
        move || {
            use rustix::fs::{CWD, RenameFlags, renameat_with};
            while !stop.load(Ordering::Relaxed) {
                renameat_with(CWD, &dir, CWD, &link, RenameFlags::EXCHANGE).unwrap();
            }
        }
    });
    let (mut reads, mut writes) = (0, 0);
    for n in 0..crate::place::scaled(3000) {
        if let Ok(prepared) = place.prepare("read_file", &json!({"path": "dir/secret"})) {
            let outcome = place.execute(&prepared, &place.context(&prepared)).await;
            assert!(!outcome.text.contains("outside secret"), "{}", outcome.text);
            reads += u32::from(outcome.state == AttemptState::Completed);
        }
        if n % 10 == 0 {
            let arguments = json!({"path": "dir/secret", "content": format!("inside {n}")});
            if let Ok(prepared) = place.prepare("write_file", &arguments) {
                let outcome = place.execute(&prepared, &place.context(&prepared)).await;
                writes += u32::from(outcome.state == AttemptState::Completed);
            }
        }
    }
    stop.store(true, Ordering::Relaxed);
    swapper.join().unwrap();
    assert!(reads > 0, "no read got through: the test proved nothing");
    assert_eq!(
        fs::read_to_string(place.outside("secret")).unwrap(),
        "outside secret"
    );
    assert_eq!(
        fs::read_dir(place.outside("")).unwrap().count(),
        1,
        "{writes} writes"
    );
}
