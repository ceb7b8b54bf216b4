//! What a replaced file keeps.
#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use holdfast_domain::recovery::lifecycle::AttemptState;
use rustix::fs::XattrFlags;
use serde_json::json;

use crate::place::Place;

fn attribute(path: &Path, name: &str) -> Option<Vec<u8>> {
    let mut value = vec![0; 1024];
    let length = rustix::fs::getxattr(path, name, value.as_mut_slice()).ok()?;
    value.truncate(length);
    Some(value)
}

#[tokio::test]
async fn tr_17_a_replaced_file_keeps_mode_owner_and_extended_attributes() {
    let place = Place::new();
    place.put("a", "old");
    let path = place.path("a");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    // As root, another owner too.
    let _ = std::os::unix::fs::chown(&path, Some(4321), Some(8765));
    let named = rustix::fs::setxattr(&path, "user.origin", b"here", XattrFlags::empty());
    if named.is_err() {
        eprintln!("SKIPPED in part: this file system has no extended attributes");
    }
    // User 4321 may read, by an access list: version 2, then tag, permission, id each.
    let list: Vec<u8> = [
        (1u16, 6u16, u32::MAX),
        (2, 4, 1234),
        (4, 4, u32::MAX),
        (16, 4, u32::MAX),
        (32, 0, u32::MAX),
    ]
    .iter()
    .fold(2u32.to_le_bytes().to_vec(), |mut bytes, (tag, may, id)| {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(may.to_le_bytes());
        bytes.extend(id.to_le_bytes());
        bytes
    });
    let _ = rustix::fs::setxattr(&path, "system.posix_acl_access", &list, XattrFlags::empty());
    let state = || {
        let meta = fs::metadata(&path).unwrap();
        let names = ["user.origin", "system.posix_acl_access"];
        (
            (meta.mode(), meta.uid(), meta.gid()),
            names.map(|name| attribute(&path, name)),
        )
    };
    let before = state();
    assert_eq!(before.1[0].is_some(), named.is_ok());
    let number = fs::metadata(&path).unwrap().ino();
    let outcome = place
        .call("write_file", json!({"path": "a", "content": "new"}))
        .await;
    assert_eq!(outcome.state, AttemptState::Completed, "{}", outcome.text);
    assert_eq!(place.get("a"), "new");
    assert_ne!(fs::metadata(&path).unwrap().ino(), number);
    assert_eq!(state(), before);
}

#[tokio::test]
async fn a_new_file_has_the_rights_of_any_new_file() {
    let place = Place::new();
    place.put("theirs", "any");
    let outcome = place
        .call("write_file", json!({"path": "ours", "content": "new"}))
        .await;
    assert_eq!(outcome.state, AttemptState::Completed);
    let mode = |name| fs::metadata(place.path(name)).unwrap().mode();
    assert_eq!(mode("ours"), mode("theirs"));
}
