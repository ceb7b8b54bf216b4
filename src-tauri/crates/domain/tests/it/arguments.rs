//! Argument texts: what is refused, what means the same, what gets which digest.

use std::collections::BTreeMap;

use holdfast_domain::canonical::{
    ArgumentError, MAX_DEPTH, canonical, check_arguments, digest, sha256_hex,
};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::vectors;

#[derive(Deserialize)]
struct Vectors {
    accepted: Vec<Accepted>,
    refused: Vec<Refused>,
}

#[derive(Deserialize)]
struct Accepted {
    name: String,
    input: String,
    canonical: String,
    sha256: String,
}

#[derive(Deserialize)]
struct Refused {
    name: String,
    input: String,
    code: String,
}

#[test]
fn tr_05_canonical_text_and_digest_are_those_of_the_vectors() {
    let cases = vectors::read::<Vectors>("canonical").accepted;
    assert!(cases.len() >= 25);
    for case in cases {
        let value = check_arguments(&case.input).unwrap();
        assert_eq!(canonical(&value), case.canonical, "{}", case.name);
        assert_eq!(digest(&value), case.sha256, "{}", case.name);
    }
}

#[test]
fn tr_04_c35_refused_texts_have_the_code_of_the_vectors() {
    let cases = vectors::read::<Vectors>("canonical").refused;
    assert!(cases.len() >= 30);
    for case in cases {
        let error = check_arguments(&case.input).unwrap_err();
        assert_eq!(error.code(), case.code, "{}: {error}", case.name);
        let text = error.to_string();
        assert!(text.contains("nothing was run"), "{text}");
    }
}

#[test]
fn tr_04_empty_text_is_an_empty_object() {
    assert_eq!(check_arguments(""), Ok(Value::Object(Map::new())));
    assert_eq!(digest(&check_arguments("").unwrap()), sha256_hex(b"{}"));
}

#[test]
fn tr_04_c35_depth_64_is_read_and_65_refused() {
    let arrays = |levels: usize| {
        format!(
            "{{\"a\":{}{}}}",
            "[".repeat(levels - 1),
            "]".repeat(levels - 1)
        )
    };
    let objects = |levels: usize| format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
    for text in [arrays(MAX_DEPTH), objects(MAX_DEPTH)] {
        assert!(check_arguments(&text).is_ok());
    }
    for text in [arrays(MAX_DEPTH + 1), objects(MAX_DEPTH + 1)] {
        assert_eq!(check_arguments(&text), Err(ArgumentError::TooDeep));
    }
    // Far beyond what a recursive reader survives.
    let hostile = "[".repeat(200_000);
    assert_eq!(check_arguments(&hostile), Err(ArgumentError::TooDeep));
    // Brackets in a string are no levels, and neither are brackets side by side.
    let quoted = format!("{{\"a\":\"{}\"}}", "[{\\\"".repeat(200));
    assert!(check_arguments(&quoted).is_ok());
    let wide = format!("{{\"a\":[{}[]]}}", "[],".repeat(200));
    assert!(check_arguments(&wide).is_ok());
}

#[test]
fn tr_04_integers_at_the_border() {
    for text in ["9007199254740991", "-9007199254740991", "0", "-0", "1"] {
        assert!(
            check_arguments(&format!("{{\"a\":{text}}}")).is_ok(),
            "{text}"
        );
    }
    for text in [
        "9007199254740992",
        "-9007199254740992",
        "18446744073709551616",
        "-18446744073709551616",
    ] {
        assert_eq!(
            check_arguments(&format!("{{\"a\":{text}}}")),
            Err(ArgumentError::UnsafeInteger(text.to_owned())),
        );
    }
    // The same digits in a string are text.
    assert!(check_arguments("{\"a\":\"12345678901234567890123\"}").is_ok());
}

#[test]
fn tr_04_a_long_integer_is_named_in_part() {
    let text = format!("{{\"a\":{}}}", "9".repeat(10_000));
    let Err(ArgumentError::UnsafeInteger(named)) = check_arguments(&text) else {
        panic!("accepted")
    };
    assert_eq!(named.len(), 40);
}

#[test]
fn tr_04_every_surrogate_pair_is_read_and_every_half_refused() {
    for high in (0xd800..0xdc00).step_by(7) {
        for low in (0xdc00..0xe000).step_by(31) {
            let code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
            let text = format!("{{\"a\":\"\\u{high:04x}\\u{low:04X}\"}}");
            assert_eq!(
                check_arguments(&text).unwrap()["a"],
                Value::String(char::from_u32(code).unwrap().to_string())
            );
        }
    }
    for half in 0xd800..0xe000 {
        for text in [
            format!("{{\"a\":\"\\u{half:04x}\"}}"),
            format!("{{\"\\u{half:04X}\":1}}"),
        ] {
            assert_eq!(check_arguments(&text), Err(ArgumentError::LoneSurrogate));
        }
    }
    // An escaped backslash before the letters is no escape.
    assert_eq!(
        check_arguments("{\"a\":\"\\\\ud800\"}").unwrap()["a"],
        Value::String("\\ud800".to_owned())
    );
}

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(any::<char>(), 0..8).prop_map(|letters| letters.into_iter().collect())
}

/// Values without anything that is refused, at most 8 levels deep.
fn safe_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (-9_007_199_254_740_991i64..=9_007_199_254_740_991).prop_map(Value::from),
        (-1.0e15f64..1.0e15)
            .prop_filter("not an integer", |number| number.fract() != 0.0)
            .prop_map(Value::from),
        text().prop_map(Value::String),
    ];
    leaf.prop_recursive(6, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            prop::collection::btree_map(text(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// JSON text of a value with its keys in reverse, blanks, and every letter escaped.
fn other_spelling(value: &Value, out: &mut String) {
    let text = |text: &str, out: &mut String| {
        out.push('"');
        for unit in text.encode_utf16() {
            out.push_str(&format!("\\u{unit:04X}"));
        }
        out.push('"');
    };
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => out.push_str(&value.to_string()),
        Value::String(string) => text(string, out),
        Value::Array(values) => {
            out.push_str("[ ");
            for (place, value) in values.iter().enumerate() {
                if place > 0 {
                    out.push_str("\n,\t");
                }
                other_spelling(value, out);
            }
            out.push_str(" ]");
        }
        Value::Object(map) => {
            out.push_str("{\r\n");
            let sorted: BTreeMap<_, _> = map.iter().collect();
            for (place, (key, value)) in sorted.into_iter().rev().enumerate() {
                if place > 0 {
                    out.push_str(" , ");
                }
                text(key, out);
                out.push_str(" : ");
                other_spelling(value, out);
            }
            out.push('}');
        }
    }
}

/// Text that is often JSON and often just not.
fn almost_json() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        8 => prop::sample::select(vec![
            "{", "}", "[", "]", ",", ":", "\"", "\"a\"", "\"b\":", "1", "-", "0", ".", "e", "E+",
            "true", "null", "\\", "\\u", "\\ud83d", "\\ude00", "\\n", " ", "\n", "\u{2028}", "é",
            "9007199254740993", "1e999", "{\"a\":1}", "{\"a\":[", "\"\\ud83d\\ude00\"",
        ]).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
}

/// What serde_json says of a text, and what it can't tell.
fn agrees_with_serde(raw: &str) -> Result<(), TestCaseError> {
    let plain = serde_json::from_str::<Value>(raw);
    match check_arguments(raw) {
        Ok(value) if raw.trim().is_empty() => prop_assert_eq!(value, Value::Object(Map::new())),
        Ok(value) => prop_assert_eq!(Some(value), plain.ok()),
        Err(ArgumentError::Invalid(_)) => prop_assert!(plain.is_err(), "{raw}"),
        Err(ArgumentError::NotAnObject) => prop_assert!(!plain.unwrap().is_object()),
        Err(ArgumentError::DuplicateKey(_)) => {
            // Two keys were folded into one, or the text breaks off later.
            let folded = plain.is_ok_and(|value| value.to_string().len() < raw.len());
            prop_assert!(folded || serde_json::from_str::<Value>(raw).is_err());
        }
        Err(ArgumentError::LoneSurrogate) => prop_assert!(plain.is_err(), "{raw}"),
        Err(ArgumentError::UnsafeInteger(token)) => {
            prop_assert!(token.trim_start_matches('-').len() >= 16 && raw.contains(&token));
        }
        Err(ArgumentError::TooDeep) => {
            let levels = raw.matches(['[', '{']).count();
            prop_assert!(levels > MAX_DEPTH);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(vectors::cases(1000))]

    #[test]
    fn tr_04_validity_is_that_of_serde_json(raw in almost_json()) {
        agrees_with_serde(&raw)?;
    }

    #[test]
    fn tr_04_any_text_is_refused_or_read_without_a_crash(raw in any::<String>()) {
        agrees_with_serde(&raw)?;
    }

    #[test]
    fn tr_04_a_text_cut_short_or_bent_agrees_too(
        value in safe_value(),
        cut in any::<prop::sample::Index>(),
        put in prop::sample::select(vec!["", "\"", "\\", "}", "]", "\\ud800", "0", ",", "{\"a\":"]),
    ) {
        let text = serde_json::json!({ "k": value }).to_string();
        let mut place = cut.index(text.len() + 1);
        while !text.is_char_boundary(place) {
            place -= 1;
        }
        agrees_with_serde(&text[..place])?;
        agrees_with_serde(&format!("{}{put}{}", &text[..place], &text[place..]))?;
    }

    #[test]
    fn tr_04_safe_values_are_accepted_as_they_are(value in safe_value()) {
        let value = serde_json::json!({ "k": value });
        prop_assert_eq!(check_arguments(&value.to_string()), Ok(value));
    }

    #[test]
    fn tr_05_spelling_changes_no_digest(value in safe_value()) {
        let value = serde_json::json!({ "k": value, "a": 1 });
        let mut spelled = String::new();
        other_spelling(&value, &mut spelled);
        let read = check_arguments(&spelled).unwrap();
        prop_assert_eq!(canonical(&read), canonical(&value));
        // The canonical text is its own canonical text.
        let again = check_arguments(&canonical(&value)).unwrap();
        prop_assert_eq!(canonical(&again), canonical(&value));
    }

    #[test]
    fn tr_05_another_value_has_another_digest(a in safe_value(), b in safe_value()) {
        prop_assert_eq!(digest(&a) == digest(&b), a == b);
    }

    #[test]
    fn tr_05_a_number_is_the_nearest_double(number in any::<f64>()) {
        prop_assume!(number.is_finite());
        let read = check_arguments(&format!("{{\"a\":{number:e}}}"));
        match read {
            Ok(value) => prop_assert_eq!(value["a"].as_f64(), Some(number)),
            Err(error) => prop_assert_eq!(error.code(), "arguments_unsafe_integer"),
        }
    }
}
