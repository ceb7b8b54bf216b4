//! TR-17: each verdict of the file verifier, over encodings and over what others do to the file.

use std::fs;

use holdfast_domain::recovery::file::{FileIntent, FileVerdict};
use holdfast_tools::inspect_file;
use serde_json::json;

use crate::place::Place;

const AFTER: &str = "the content that was to be written\n";

fn planned(place: &Place, path: &str) -> FileIntent {
    let arguments = json!({"path": path, "content": AFTER});
    place
        .prepare("write_file", &arguments)
        .unwrap()
        .file
        .unwrap()
}

fn verdict(place: &Place, intent: &FileIntent) -> FileVerdict {
    inspect_file(intent, &place.workspace).verdict
}

#[test]
fn tr_17_the_intent_says_all_seven_things() {
    let place = Place::new();
    place.put("dir/a", "old");
    let intent = planned(&place, "dir/../dir/a");
    let value = serde_json::to_value(&intent).unwrap();
    let resolved = fs::canonicalize(place.path("dir/a")).unwrap();
    let sum = |text: &str| holdfast_domain::canonical::sha256_hex(text.as_bytes());
    assert_eq!(
        value,
        json!({
            "version": 1,
            "path": "dir/../dir/a",
            "resolved_path": resolved.to_str().unwrap(),
            "before": sum("old"),
            "after": sum(AFTER),
            "encoding": "utf-8",
            "existed": true,
        })
    );
    let new = planned(&place, "new");
    assert_eq!((new.before.as_str(), new.existed), ("", false));
}

#[test]
fn tr_17_all_verdicts_in_all_encodings() {
    let contents: [(&str, &[u8]); 7] = [
        ("utf-8", "gr\u{fc}n \u{1f600}\u{2028}\n".as_bytes()),
        ("utf-8 with a mark", b"\xef\xbb\xbfone\r\ntwo\r\n"),
        ("utf-16", b"\xff\xfeh\0i\0\n\0"),
        ("gbk", b"// \xd6\xd0\xce\xc4\n"),
        ("latin-1", b"gr\xfcn\n"),
        ("binary", b"\x7fELF\0\0\x01"),
        ("empty", b""),
    ];
    for (name, before) in contents {
        let place = Place::new();
        place.put("a", before);
        let intent = planned(&place, "a");
        let text = std::str::from_utf8(before).is_ok();
        assert_eq!(intent.encoding, if text { "utf-8" } else { "binary" });
        assert_eq!(verdict(&place, &intent), FileVerdict::Unchanged, "{name}");
        place.put("a", AFTER);
        assert_eq!(verdict(&place, &intent), FileVerdict::Satisfied, "{name}");
        // One byte more, or less, or the same text in another encoding.
        place.put("a", [before, b"\n"].concat());
        assert_eq!(verdict(&place, &intent), FileVerdict::Conflict, "{name}");
        place.put("a", &AFTER.as_bytes()[1..]);
        assert_eq!(verdict(&place, &intent), FileVerdict::Conflict, "{name}");
        let wide: Vec<u8> = AFTER.encode_utf16().flat_map(u16::to_le_bytes).collect();
        place.put("a", wide);
        assert_eq!(verdict(&place, &intent), FileVerdict::Conflict, "{name}");
        fs::remove_file(place.path("a")).unwrap();
        assert_eq!(verdict(&place, &intent), FileVerdict::Conflict, "{name}");
    }
}

#[test]
fn tr_17_a_write_of_the_same_content_is_satisfied_from_the_start() {
    let place = Place::new();
    place.put("a", AFTER);
    let intent = planned(&place, "a");
    assert_eq!(intent.before, intent.after);
    assert_eq!(verdict(&place, &intent), FileVerdict::Satisfied);
}

#[test]
fn tr_17_a_new_file() {
    let place = Place::new();
    let intent = planned(&place, "dir/new");
    assert_eq!(verdict(&place, &intent), FileVerdict::Unchanged);
    place.put("dir/new", "theirs");
    assert_eq!(verdict(&place, &intent), FileVerdict::Conflict);
    place.put("dir/new", "");
    assert_eq!(
        verdict(&place, &intent),
        FileVerdict::Conflict,
        "no file is not an empty file"
    );
    place.put("dir/new", AFTER);
    assert_eq!(verdict(&place, &intent), FileVerdict::Satisfied);
    fs::remove_dir_all(place.path("dir")).unwrap();
    assert_eq!(verdict(&place, &intent), FileVerdict::Unchanged);
}

#[test]
fn tr_17_a_folder_or_a_file_in_the_way_can_not_be_read() {
    let place = Place::new();
    place.put("dir/a", "old");
    let intent = planned(&place, "dir/a");
    fs::remove_file(place.path("dir/a")).unwrap();
    fs::create_dir(place.path("dir/a")).unwrap();
    assert_eq!(verdict(&place, &intent), FileVerdict::Unknown);
    fs::remove_dir_all(place.path("dir")).unwrap();
    place.put("dir", "a file now");
    assert_eq!(verdict(&place, &intent), FileVerdict::Unknown);
}

#[cfg(unix)]
#[test]
fn tr_17_a_link_in_the_place_is_not_followed() {
    use std::os::unix::fs::symlink;
    let place = Place::new();
    place.put("a", "old");
    place.put("b", AFTER);
    let intent = planned(&place, "a");
    for target in [
        place.path("b"),
        place.outside("secret"),
        place.path("nothing"),
    ] {
        fs::remove_file(place.path("a")).unwrap();
        symlink(&target, place.path("a")).unwrap();
        let found = inspect_file(&intent, &place.workspace);
        assert_eq!(
            (found.verdict, found.now),
            (FileVerdict::Unknown, None),
            "{target:?}"
        );
        assert!(!found.same_target);
    }
}

/// Nothing is forbidden to root, so there the test runs itself again as somebody else.
#[cfg(unix)]
#[test]
fn tr_17_a_file_that_may_not_be_read_is_unknown() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    if rustix::process::geteuid().is_root() {
        let again = std::process::Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "verdicts::tr_17_a_file_that_may_not_be_read_is_unknown",
            ])
            .env_remove("TMPDIR")
            .uid(65_534)
            .gid(65_534)
            .output();
        match again {
            Ok(output) => {
                let text = String::from_utf8_lossy(&output.stdout);
                assert!(
                    output.status.success() && text.contains("1 passed"),
                    "{text}"
                );
            }
            Err(error) => eprintln!("SKIPPED: nobody else may run this test ({error})"),
        }
        return;
    }
    let place = Place::new();
    place.put("dir/a", "old");
    let intent = planned(&place, "dir/a");
    for path in ["dir/a", "dir"] {
        let before = fs::metadata(place.path(path)).unwrap().permissions();
        fs::set_permissions(place.path(path), fs::Permissions::from_mode(0o000)).unwrap();
        let found = inspect_file(&intent, &place.workspace);
        fs::set_permissions(place.path(path), before).unwrap();
        assert_eq!(
            (found.verdict, found.now),
            (FileVerdict::Unknown, None),
            "{path}"
        );
    }
}
