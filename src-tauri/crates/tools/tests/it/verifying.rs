//! The file verifier.

use std::fs;

use holdfast_domain::canonical::sha256_hex;
use holdfast_domain::recovery::file::{FileIntent, FileVerdict};
use holdfast_tools::inspect_file;
use serde_json::json;

use crate::place::Place;

fn intent(place: &Place, path: &str, content: &str) -> FileIntent {
    let arguments = json!({"path": path, "content": content});
    place
        .prepare("write_file", &arguments)
        .unwrap()
        .file
        .unwrap()
}

#[test]
fn tr_37_the_file_is_judged_as_it_is_now() {
    let place = Place::new();
    place.put("a", "before");
    let intent = intent(&place, "a", "after");
    for (content, verdict) in [
        ("before", FileVerdict::Unchanged),
        ("after", FileVerdict::Satisfied),
        ("other", FileVerdict::Conflict),
    ] {
        place.put("a", content);
        let found = inspect_file(&intent, &place.workspace);
        assert_eq!(
            (found.verdict, found.same_target),
            (verdict, true),
            "{content}"
        );
        assert_eq!(found.now, Some(sha256_hex(content.as_bytes())));
        assert_eq!(place.get("a"), content);
    }
    fs::remove_file(place.path("a")).unwrap();
    let found = inspect_file(&intent, &place.workspace);
    assert_eq!((found.verdict, found.now), (FileVerdict::Conflict, None));
}

#[test]
fn tr_37_a_file_that_was_not_there() {
    let place = Place::new();
    let intent = intent(&place, "dir/new", "after");
    assert_eq!(
        inspect_file(&intent, &place.workspace).verdict,
        FileVerdict::Unchanged
    );
    assert!(!place.path("dir").exists());
    place.put("dir/new", "after");
    assert_eq!(
        inspect_file(&intent, &place.workspace).verdict,
        FileVerdict::Satisfied
    );
}

#[cfg(unix)]
#[test]
fn tr_32_another_target_is_noticed_and_nothing_outside_is_read() {
    use std::os::unix::fs::symlink;
    let place = Place::new();
    place.put("one/a", "before");
    place.put("two/a", "other");
    symlink("one", place.path("link")).unwrap();
    let intent = intent(&place, "link/a", "after");
    fs::remove_file(place.path("link")).unwrap();
    symlink("two", place.path("link")).unwrap();
    let found = inspect_file(&intent, &place.workspace);
    assert!(!found.same_target);
    assert_eq!(found.verdict, FileVerdict::Unchanged);

    fs::rename(place.path("one"), place.path("aside")).unwrap();
    symlink(place.outside(""), place.path("one")).unwrap();
    fs::write(place.outside("a"), "after").unwrap();
    let found = inspect_file(&intent, &place.workspace);
    assert_eq!((found.verdict, found.now), (FileVerdict::Unknown, None));
}
