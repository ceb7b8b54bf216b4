//! `read_file` and `list_dir`.

use holdfast_domain::recovery::lifecycle::AttemptState;
use serde_json::json;

use crate::place::Place;

#[tokio::test]
async fn a_file_is_read_as_it_is() {
    let place = Place::new();
    place.put("a.txt", "\u{feff}one\r\n\ttwo é\r\nthree");
    let outcome = place.call("read_file", json!({"path": "a.txt"})).await;
    assert_eq!(outcome.state, AttemptState::Completed);
    assert_eq!(outcome.text, "one\n\ttwo é\nthree");
    place.put("empty", "");
    let outcome = place.call("read_file", json!({"path": "empty"})).await;
    assert_eq!(outcome.text, "[the file is empty]\n");
}

#[tokio::test]
async fn a_part_says_where_it_is_and_how_to_go_on() {
    let place = Place::new();
    let lines: String = (1..=5000).map(|n| format!("line {n}\n")).collect();
    place.put("long", &lines);
    let whole = place.call("read_file", json!({"path": "long"})).await.text;
    assert!(whole.starts_with("[lines 1–2000 of 5000; go on with offset 2001]\nline 1\n"));
    assert!(whole.ends_with("line 2000\n"));
    let part = place
        .call(
            "read_file",
            json!({"path": "long", "offset": 4999, "limit": 10}),
        )
        .await;
    assert_eq!(
        part.text,
        "[lines 4999–5000 of 5000]\nline 4999\nline 5000\n"
    );
    let past = place
        .call("read_file", json!({"path": "long", "offset": 5001}))
        .await;
    assert_eq!(
        past.text,
        "[the file has 5000 lines; there is no line 5001]\n"
    );
}

#[tokio::test]
async fn huge_files_and_lines_are_bounded() {
    let place = Place::new();
    place.put("wide", "é".repeat(1_000_000));
    let text = place.call("read_file", json!({"path": "wide"})).await.text;
    assert!(text.len() <= 256 * 1024 + 200, "{}", text.len());
    assert!(text.starts_with("[line 1 is longer than 262144 bytes and is cut]\né"));
    place.put("long", "0123456789abcdef\n".repeat(100_000));
    let text = place
        .call("read_file", json!({"path": "long", "limit": 100_000}))
        .await
        .text;
    assert!(text.len() <= 256 * 1024 + 200, "{}", text.len());
    assert!(
        text.starts_with("[lines 1–15420 of 100000; go on with offset 15421]\n"),
        "{}",
        &text[..80]
    );
}

#[tokio::test]
async fn what_is_no_regular_file_is_named() {
    let place = Place::new();
    std::fs::create_dir(place.path("dir")).unwrap();
    for (path, code) in [
        ("none", "not_found"),
        ("dir", "not_a_file"),
        (".", "not_a_file"),
    ] {
        let outcome = place.call("read_file", json!({"path": path})).await;
        assert_eq!(outcome.state, AttemptState::Failed);
        if cfg!(unix) || code != "not_a_file" {
            assert_eq!(outcome.code, Some(code), "{path}: {}", outcome.text);
        }
    }
}

#[tokio::test]
async fn a_folder_is_listed_sorted() {
    let place = Place::new();
    for name in ["b.txt", "a.txt", "dir/inner", ".hidden"] {
        place.put(name, "12345");
    }
    let outcome = place.call("list_dir", json!({"path": "."})).await;
    assert_eq!(
        outcome.text,
        ".data/\n.hidden  5\na.txt  5\nb.txt  5\ndir/\n"
    );
    let outcome = place.call("list_dir", json!({"path": "a.txt"})).await;
    assert_eq!(outcome.code, Some("not_a_folder"), "{}", outcome.text);
    let outcome = place.call("list_dir", json!({"path": "none"})).await;
    assert_eq!(outcome.code, Some("not_found"));
}

#[tokio::test]
async fn a_huge_folder_is_bounded() {
    let place = Place::new();
    for n in 0..2100 {
        place.put(&format!("dir/a file with a long name {n}"), "");
    }
    let text = place.call("list_dir", json!({"path": "dir"})).await;
    assert!(text.text.len() <= 32 * 1024 && text.truncated);
    assert!(text.text.contains("more than 2000 entries"));
}
