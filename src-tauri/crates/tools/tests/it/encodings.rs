//! C11: bytes that are not UTF-8, in files.

use holdfast_domain::recovery::lifecycle::AttemptState;
use serde_json::json;

use crate::place::Place;

const GBK: &[u8] = b"int x; // \xd6\xd0\xce\xc4\n";
const UTF16: &[u8] = b"\xff\xfeh\0i\0\n\0";
const BINARY: &[u8] = b"\x7fELF\0\0\x01";

#[tokio::test]
async fn c11_odd_encodings_are_readable_and_visible() {
    let place = Place::new();
    place.put("gbk", GBK);
    place.put("utf16", UTF16);
    place.put("binary", BINARY);
    place.put("separators", "a\u{2028}b\u{2029}\u{1f600}\u{1b}[0m\n");
    let read = async |path: &str| place.call("read_file", json!({ "path": path })).await.text;
    let gbk = read("gbk").await;
    assert!(
        gbk.starts_with("[the file is not UTF-8;")
            && gbk.ends_with("int x; // \u{fffd}\u{fffd}\u{fffd}\u{fffd}\n")
    );
    let utf16 = read("utf16").await;
    assert!(utf16.starts_with("[the file is UTF-16") && utf16.ends_with("]\nhi\n"));
    let binary = read("binary").await;
    assert!(binary.starts_with("[the file is binary (7 bytes)"));
    assert!(
        binary.ends_with("\u{2421}ELF\u{2400}\u{2400}\u{2401}"),
        "{binary:?}"
    );
    assert_eq!(
        read("separators").await,
        "a\u{2028}b\u{2029}\u{1f600}\u{241b}[0m\n"
    );
    for text in [gbk, utf16, binary] {
        let line = serde_json::to_string(&text).unwrap();
        assert_eq!(serde_json::from_str::<String>(&line).unwrap(), text);
        assert!(!line.contains('\n'));
    }
}

#[tokio::test]
async fn c11_what_is_not_utf_8_is_not_edited_and_stays_as_it_is() {
    let place = Place::new();
    for (name, bytes) in [("gbk", GBK), ("utf16", UTF16), ("binary", BINARY)] {
        place.put(name, bytes);
        let edits = json!([{"old_text": "i", "new_text": "o"}]);
        let code = place.refusal("edit_file", &json!({"path": name, "edits": edits}));
        assert_eq!(code, "file_not_text", "{name}");
        assert_eq!(std::fs::read(place.path(name)).unwrap(), bytes);
    }
    // Replacing it whole is a clear wish.
    let prepared = place
        .prepare("write_file", &json!({"path": "gbk", "content": "new"}))
        .unwrap();
    assert_eq!(prepared.file.as_ref().unwrap().encoding, "binary");
    assert_eq!(prepared.diff, None);
    let outcome = place.execute(&prepared, &place.context(&prepared)).await;
    assert_eq!(outcome.state, AttemptState::Completed);
    assert_eq!(place.get("gbk"), "new");
}

#[tokio::test]
async fn line_ends_and_byte_order_mark_survive_an_edit() {
    let place = Place::new();
    place.put("a.cs", "\u{feff}one\r\ntwo\r\n");
    let edits = json!([{"old_text": "one\ntwo", "new_text": "1\n2\n3"}]);
    let outcome = place
        .call("edit_file", json!({"path": "a.cs", "edits": edits}))
        .await;
    assert_eq!(outcome.state, AttemptState::Completed, "{}", outcome.text);
    assert_eq!(place.get("a.cs"), "\u{feff}1\r\n2\r\n3\r\n");
}
