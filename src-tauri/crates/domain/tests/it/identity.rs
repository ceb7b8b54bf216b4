//! Identities, keys, scopes and call ids.

use std::collections::BTreeSet;

use holdfast_domain::recovery::identity::{EmptyScope, Identity, call_id, resource_scope};
use serde::Deserialize;

use crate::log;
use crate::vectors;

#[derive(Deserialize)]
struct Vectors {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    identity: Identity,
    idempotency_key: String,
}

#[test]
fn tr_07_keys_are_those_of_the_vectors() {
    let cases = vectors::read::<Vectors>("identity").cases;
    assert!(cases.len() >= 10);
    for case in cases {
        assert_eq!(
            case.identity.idempotency_key(),
            case.idempotency_key,
            "{}",
            case.name
        );
    }
}

#[test]
fn tr_07_every_field_but_the_attempt_id_makes_another_key() {
    let first = log::identity("a", "c", "shell");
    let other = |change: &dyn Fn(&mut Identity)| {
        let mut identity = first.clone();
        change(&mut identity);
        identity.idempotency_key()
    };
    assert_eq!(
        other(&|identity| identity.attempt_id = "b".to_owned()),
        first.idempotency_key()
    );
    let keys = BTreeSet::from([
        first.idempotency_key(),
        other(&|identity| identity.session_id.push('x')),
        other(&|identity| identity.turn_id.push('x')),
        other(&|identity| identity.step += 1),
        other(&|identity| identity.call_id.push('x')),
        other(&|identity| identity.canonical_tool.push('x')),
        other(&|identity| identity.argument_digest.push('x')),
        other(&|identity| identity.resource_scope.push('x')),
    ]);
    assert_eq!(keys.len(), 8);
}

#[test]
fn tr_06_text_can_not_move_between_fields() {
    let mut a = log::identity("a", "c", "shell");
    let mut b = a.clone();
    a.turn_id = "t\",\"x".to_owned();
    b.turn_id = "t".to_owned();
    b.session_id.push_str("\",\"x");
    assert_ne!(a.idempotency_key(), b.idempotency_key());
}

#[test]
fn tr_06_an_identity_is_stored_with_exactly_its_fields() {
    let stored = serde_json::to_value(log::identity("a", "c", "shell")).unwrap();
    let keys: Vec<_> = stored.as_object().unwrap().keys().cloned().collect();
    assert_eq!(
        keys,
        [
            "argument_digest",
            "attempt_id",
            "call_id",
            "canonical_tool",
            "resource_scope",
            "session_id",
            "step",
            "turn_id"
        ]
    );
}

#[test]
fn tr_06_a_scope_is_the_session_unless_the_tool_names_one() {
    assert_eq!(resource_scope("s", None), Ok("session:s".to_owned()));
    assert_eq!(
        resource_scope("s", Some("file:/w/a")),
        Ok("file:/w/a".to_owned())
    );
    assert_eq!(resource_scope("s", Some("")), Err(EmptyScope));
}

#[test]
fn tr_06_two_calls_with_equal_triples_are_the_same_effect() {
    let first = log::identity("a", "c", "shell");
    let mut again = first.clone();
    again.session_id.push('x');
    again.turn_id.push('x');
    again.step += 1;
    again.call_id.push('x');
    again.attempt_id.push('x');
    assert_eq!(first.triple(), again.triple());
    for change in [
        |identity: &mut Identity| identity.canonical_tool.push('x'),
        |identity: &mut Identity| identity.argument_digest.push('x'),
        |identity: &mut Identity| identity.resource_scope.push('x'),
    ] {
        let mut other = first.clone();
        change(&mut other);
        assert_ne!(first.triple(), other.triple());
    }
}

#[test]
fn tr_06_c33_a_providers_id_is_kept_while_it_is_new() {
    let long = "x".repeat(4000);
    for id in ["call_1", "0", "é", long.as_str()] {
        assert_eq!(call_id(id, |_| false, "fresh"), id);
    }
    assert_eq!(call_id("", |_| false, "fresh"), "call_fresh");
    assert_eq!(call_id("call_1", |_| true, "fresh"), "call_fresh");
}

#[test]
fn c33_one_id_for_ever_and_two_equal_calls_are_two_attempts_with_two_keys() {
    let mut taken = BTreeSet::new();
    let mut keys = BTreeSet::new();
    for fresh in ["f1", "f2", "f3"] {
        let id = call_id("call_0", |id| taken.contains(id), fresh);
        assert!(taken.insert(id.clone()), "{id} was given twice");
        let mut identity = log::identity(fresh, &id, "shell");
        identity.argument_digest = "the same".to_owned();
        keys.insert(identity.idempotency_key());
    }
    assert_eq!(
        taken.into_iter().collect::<Vec<_>>(),
        ["call_0", "call_f2", "call_f3"]
    );
    assert_eq!(keys.len(), 3);
}
