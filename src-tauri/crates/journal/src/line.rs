//! One record as one line, and its seal.
//!
//! A line is `{"seq":N,"time":MS,"kind":"…","payload":…,"c":"xxxxxxxx"}\n`. The seal `c` is the
//! CRC-32C, in lower hex, of the session id's bytes and all bytes of the line before `,"c":`.
//! Guarantees: a line holds no line feed but its last byte, whatever the payload; the seal is
//! checked before anything is parsed; a line sealed for one session is nothing in another.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::JournalError;

/// The largest payload of a record, in bytes. Larger content belongs in a spill file.
pub const MAX_PAYLOAD_BYTES: usize = 16 * 1024 * 1024;

const MAX_KIND_BYTES: usize = 64;

/// The longest line, in bytes: a payload and what stands around it.
pub(crate) const MAX_LINE_BYTES: usize = MAX_PAYLOAD_BYTES + 256;

/// `,"c":"xxxxxxxx"}`
const SEAL_BYTES: usize = 16;

/// A record of the log.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Its number, from 1 (the header), one more than the one before.
    pub seq: u64,
    /// When it was written, in milliseconds since the Unix epoch, as the writer said.
    pub at: u64,
    /// What it is.
    pub kind: String,
    /// Its content, byte for byte as it is in the log.
    pub payload: Box<RawValue>,
}

#[derive(Deserialize)]
struct Wire<'a> {
    seq: u64,
    time: u64,
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    payload: &'a RawValue,
}

/// The checksum of a line's body for a session.
pub(crate) fn checksum(session: &str, body: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(session.as_bytes()), body)
}

/// Closes a JSON object, whose last brace is still missing, with its seal and a line feed.
pub(crate) fn seal(session: &str, mut body: String) -> (String, u32) {
    let crc = checksum(session, body.as_bytes());
    body.push_str(&format!(",\"c\":\"{crc:08x}\"}}\n"));
    (body, crc)
}

/// Checks a line's seal, the line without its line feed, and answers its checksum.
pub(crate) fn unseal(session: &str, line: &[u8]) -> Option<u32> {
    let (body, seal) = line.split_at_checked(line.len().checked_sub(SEAL_BYTES)?)?;
    let digits = seal.strip_prefix(b",\"c\":\"")?.strip_suffix(b"\"}")?;
    let crc = checksum(session, body);
    (format!("{crc:08x}").as_bytes() == digits).then_some(crc)
}

/// Checks a JSON text and makes it fit on a line: a raw line break in valid JSON is white space.
pub(crate) fn payload(text: &str) -> Result<Box<RawValue>, JournalError> {
    let invalid = |error: serde_json::Error| JournalError::RecordInvalid {
        reason: format!("its content is not JSON ({error})"),
    };
    let raw: &RawValue = serde_json::from_str(text).map_err(invalid)?;
    if raw.get().len() > MAX_PAYLOAD_BYTES {
        return Err(JournalError::RecordTooLarge {
            bytes: raw.get().len(),
            limit: MAX_PAYLOAD_BYTES,
        });
    }
    if raw.get().contains(['\n', '\r']) {
        RawValue::from_string(raw.get().replace(['\n', '\r'], " ")).map_err(invalid)
    } else {
        Ok(raw.to_owned())
    }
}

/// Checks a kind: 1 to 64 of `[A-Za-z0-9_.:-]`.
pub(crate) fn check_kind(kind: &str) -> Result<(), JournalError> {
    let fine = kind
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte));
    if fine && !kind.is_empty() && kind.len() <= MAX_KIND_BYTES {
        Ok(())
    } else {
        Err(JournalError::RecordInvalid {
            reason: "its kind is not made of letters, digits, '_', '.', ':' and '-', 64 at most"
                .to_owned(),
        })
    }
}

/// An entry, its payload checked, as its line, line feed included, and its checksum.
pub(crate) fn encode(session: &str, entry: &Entry) -> (String, u32) {
    let body = format!(
        "{{\"seq\":{},\"time\":{},\"kind\":{},\"payload\":{}",
        entry.seq,
        entry.at,
        serde_json::Value::from(entry.kind.as_str()),
        entry.payload.get()
    );
    seal(session, body)
}

/// A line, without its line feed, as its entry and checksum; `None` when its seal is not right.
pub(crate) fn decode(session: &str, line: &[u8]) -> Option<(Entry, u32)> {
    let crc = unseal(session, line)?;
    let wire: Wire<'_> = serde_json::from_slice(line).ok()?;
    let entry = Entry {
        seq: wire.seq,
        at: wire.time,
        kind: wire.kind.into_owned(),
        payload: wire.payload.to_owned(),
    };
    Some((entry, crc))
}
