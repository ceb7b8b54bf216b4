//! The table of operations.

use std::collections::BTreeSet;

use holdfast_api::operations::{HOST, Method, RECOVERY_BODY};

#[test]
fn every_operation_has_a_name_and_a_place_of_its_own() {
    let names: BTreeSet<_> = HOST.iter().map(|operation| operation.name).collect();
    let places: BTreeSet<_> = HOST
        .iter()
        .map(|operation| (operation.method, operation.path))
        .collect();
    assert_eq!(names.len(), HOST.len());
    assert_eq!(places.len(), HOST.len());
}

#[test]
fn reading_takes_no_body_and_writing_is_bounded() {
    for operation in HOST {
        match operation.method {
            Method::Get | Method::Delete => assert_eq!(operation.body_limit, 0, "{operation:?}"),
            Method::Post | Method::Patch => assert!(
                (1..=5 * 1024 * 1024).contains(&operation.body_limit),
                "{operation:?}"
            ),
        }
    }
}

#[test]
fn tr_41_a_recovery_action_has_at_most_16_kib() {
    let limit = HOST
        .iter()
        .find(|operation| operation.path == "/tool-recovery" && operation.method == Method::Post)
        .map(|operation| operation.body_limit);
    assert_eq!(limit, Some(RECOVERY_BODY));
    assert_eq!(RECOVERY_BODY, 16 * 1024);
}
