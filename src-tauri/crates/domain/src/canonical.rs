//! Canonical arguments: which argument texts are refused, and the digest of those that are not.
//!
//! Guarantee: two argument texts have the same digest only if they mean the same value, a number
//! with a fraction or an exponent being the nearest double. Texts for which RFC 8785 would fold two
//! integers or two keys into one, or give no value, are refused first (TR-04).

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use sha2::{Digest, Sha256};

/// Deepest nesting of arrays and objects that arguments may have (TR-04).
pub const MAX_DEPTH: usize = 64;
/// Largest magnitude of an integer token (TR-04): 2^53 − 1.
pub const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// Why an argument text never becomes a call (TR-04). The text itself is kept by the caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentError {
    /// Not JSON.
    #[error("the arguments are not valid JSON ({0}); nothing was run; send one JSON object")]
    Invalid(String),
    /// JSON, but no object.
    #[error("the arguments are not a JSON object; nothing was run; send one JSON object")]
    NotAnObject,
    /// A key occurs twice in one object.
    #[error("the key {0:?} occurs twice; nothing was run; send each key once")]
    DuplicateKey(String),
    /// An integer that a double can't hold exactly.
    #[error("the integer {0} is beyond ±(2^53−1); nothing was run; send it as a string")]
    UnsafeInteger(String),
    /// Half of a surrogate pair.
    #[error("a string has half of a surrogate pair; nothing was run; send whole characters")]
    LoneSurrogate,
    /// Nested too deeply.
    #[error(
        "the arguments are nested more than {MAX_DEPTH} levels deep; nothing was run; flatten them"
    )]
    TooDeep,
}

impl ArgumentError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "arguments_invalid",
            Self::NotAnObject => "arguments_not_object",
            Self::DuplicateKey(_) => "arguments_duplicate_key",
            Self::UnsafeInteger(_) => "arguments_unsafe_integer",
            Self::LoneSurrogate => "arguments_lone_surrogate",
            Self::TooDeep => "arguments_too_deep",
        }
    }
}

/// TR-04: the raw text's checks. An empty or blank text counts as `{}`.
///
/// # Errors
/// The first reason for a refusal that is found.
pub fn check_arguments(raw: &str) -> Result<Value, ArgumentError> {
    if raw.trim().is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    scan(raw)?;
    let mut json = serde_json::Deserializer::from_str(raw);
    let mut duplicate = None;
    let value = Strict {
        duplicate: &mut duplicate,
    }
    .deserialize(&mut json)
    .and_then(|value| json.end().map(|()| value));
    match (value, duplicate) {
        (_, Some(key)) => Err(ArgumentError::DuplicateKey(key)),
        (Err(error), None) => Err(ArgumentError::Invalid(error.to_string())),
        (Ok(value @ Value::Object(_)), None) => Ok(value),
        (Ok(_), None) => Err(ArgumentError::NotAnObject),
    }
}

/// The RFC 8785 form of a value that passed [`check_arguments`], or of a wire type of our own.
/// A value that has none (a map with keys that are no strings) gives its debug text, so that two
/// different values never share the empty text.
pub fn canonical<T: Serialize + fmt::Debug>(value: &T) -> String {
    serde_json_canonicalizer::to_string(value).unwrap_or_else(|_| format!("{value:?}"))
}

/// SHA-256 (64 hex digits) of the RFC 8785 form.
pub fn digest<T: Serialize + fmt::Debug>(value: &T) -> String {
    sha256_hex(canonical(value).as_bytes())
}

/// SHA-256 as 64 lower-case hex digits.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Bytes as lower-case hex digits.
pub fn hex(bytes: &[u8]) -> String {
    use fmt::Write;
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

/// What serde_json can't tell: integer tokens as they are written, half surrogates, depth.
fn scan(raw: &str) -> Result<(), ArgumentError> {
    let bytes = raw.as_bytes();
    let (mut at, mut depth) = (0, 0usize);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => at = scan_string(bytes, at + 1)?,
            b'{' | b'[' => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return Err(ArgumentError::TooDeep);
                }
                at += 1;
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                at += 1;
            }
            b'-' | b'0'..=b'9' => {
                let end = bytes[at..]
                    .iter()
                    .position(|b| !matches!(b, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9'))
                    .map_or(bytes.len(), |length| at + length);
                let token = &raw[at..end];
                let digits = token.trim_start_matches('-');
                if !digits.is_empty()
                    && digits.bytes().all(|b| b.is_ascii_digit())
                    && digits.parse::<u64>().map_or(true, |n| n > MAX_SAFE_INTEGER)
                {
                    return Err(ArgumentError::UnsafeInteger(
                        token.chars().take(40).collect(),
                    ));
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    Ok(())
}

/// Scans a string's body from `at`; returns the place after its closing quote.
fn scan_string(bytes: &[u8], mut at: usize) -> Result<usize, ArgumentError> {
    let mut high = false;
    loop {
        let unit = match bytes.get(at) {
            Some(b'\\') if bytes.get(at + 1) == Some(&b'u') => {
                let unit = bytes
                    .get(at + 2..at + 6)
                    .and_then(|digits| std::str::from_utf8(digits).ok())
                    .and_then(|digits| u16::from_str_radix(digits, 16).ok());
                at += 6;
                unit
            }
            Some(b'\\') => {
                at += 2;
                None
            }
            Some(b'"') | None => {
                return if high {
                    Err(ArgumentError::LoneSurrogate)
                } else {
                    Ok(at + 1)
                };
            }
            Some(_) => {
                at += 1;
                None
            }
        };
        let low = unit.is_some_and(|u| (0xdc00..0xe000).contains(&u));
        if high != low {
            return Err(ArgumentError::LoneSurrogate);
        }
        high = unit.is_some_and(|u| (0xd800..0xdc00).contains(&u));
    }
}

/// Reads a value and remembers the first key that occurs twice in one object.
struct Strict<'a> {
    duplicate: &'a mut Option<String>,
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON value")
    }
    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }
    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("a number that is not finite"))
    }
    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = seq.next_element_seed(Strict {
            duplicate: &mut *self.duplicate,
        })? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut values = Map::new();
        let mut seen = BTreeSet::new();
        while let Some(key) = map.next_key::<String>()? {
            if !seen.insert(key.clone()) {
                self.duplicate.get_or_insert(key);
                return Err(A::Error::custom("duplicate key"));
            }
            let value = map.next_value_seed(Strict {
                duplicate: &mut *self.duplicate,
            })?;
            values.insert(key, value);
        }
        Ok(Value::Object(values))
    }
}
