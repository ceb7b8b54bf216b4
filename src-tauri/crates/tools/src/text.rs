//! Bytes of outside as text for a model and a person.
//!
//! Guarantees (C11): any bytes give valid text; what is not text is replaced visibly, not dropped;
//! terminal codes are removed; a bounded text says what it leaves out.

use std::borrow::Cow;

/// Bytes of text that one result gives to a model; `read_file` has a bound of its own.
pub const MODEL_TEXT_LIMIT: usize = 32 * 1024;

/// How bytes were read as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// Valid UTF-8 without NUL.
    Utf8,
    /// By its byte order mark.
    Utf16,
    /// Neither: some bytes were replaced.
    Other,
}

/// Any bytes as clean text: UTF-16 with a byte order mark is decoded, other bytes that are not
/// UTF-8 become U+FFFD, terminal codes go, `\r\n` and `\r` become `\n`, and other control
/// characters become their pictures (NUL is `␀`).
pub fn visible(bytes: &[u8]) -> String {
    clean(&decode(bytes).0)
}

/// Bytes as text, control characters untouched.
pub(crate) fn decode(bytes: &[u8]) -> (Cow<'_, str>, Encoding) {
    if let Some((read, rest)) = utf16_mark(bytes) {
        let units = rest.chunks(2).map(|pair| match *pair {
            [a, b] => read([a, b]),
            // Half a unit at the end.
            _ => 0xfffd,
        });
        let text = char::decode_utf16(units)
            .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect();
        return (Cow::Owned(text), Encoding::Utf16);
    }
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => (Cow::Borrowed(text), Encoding::Utf8),
        Ok(text) => (Cow::Borrowed(text), Encoding::Other),
        Err(_) => (String::from_utf8_lossy(bytes), Encoding::Other),
    }
}

type ReadUnit = fn([u8; 2]) -> u16;

fn utf16_mark(bytes: &[u8]) -> Option<(ReadUnit, &[u8])> {
    if let Some(rest) = bytes.strip_prefix(&[0xff, 0xfe]) {
        Some((u16::from_le_bytes, rest))
    } else {
        let rest = bytes.strip_prefix(&[0xfe, 0xff])?;
        Some((u16::from_be_bytes, rest))
    }
}

/// Longest control string (a window title, a link) that is taken as one; what does not end within
/// it was no control string, and must not swallow the rest of the output.
const CONTROL_STRING_LIMIT: usize = 4096;

/// Text without terminal codes and with visible control characters.
pub(crate) fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let after = rest.get(c.len_utf8()..).unwrap_or_default();
        rest = match c {
            '\u{1b}' => after_escape(after),
            '\u{9b}' => after_sequence(after),
            '\r' => {
                out.push('\n');
                after.strip_prefix('\n').unwrap_or(after)
            }
            '\n' | '\t' => {
                out.push(c);
                after
            }
            // A backspace shows what it does on a terminal, as far as a line goes.
            '\u{8}' => {
                if !out.ends_with('\n') {
                    out.pop();
                }
                after
            }
            _ => {
                out.push(picture(c));
                after
            }
        };
    }
    out
}

fn picture(c: char) -> char {
    match c {
        '\u{0}'..='\u{1f}' => char::from_u32(0x2400 + c as u32).unwrap_or(c),
        '\u{7f}' => '\u{2421}',
        '\u{80}'..='\u{9f}' => char::REPLACEMENT_CHARACTER,
        _ => c,
    }
}

/// What follows an escape sequence, from after its ESC.
fn after_escape(text: &str) -> &str {
    let mut chars = text.char_indices();
    match chars.next() {
        Some((_, '[')) => after_sequence(chars.as_str()),
        Some((_, ']' | 'P' | 'X' | '^' | '_')) => after_string(chars.as_str()),
        Some((_, '\u{20}'..='\u{2f}')) => {
            let end = text.find(|c| !matches!(c, '\u{20}'..='\u{2f}'));
            match end.and_then(|end| text.get(end..)) {
                Some(rest) if rest.starts_with(|c| matches!(c, '\u{30}'..='\u{7e}')) => {
                    rest.get(1..).unwrap_or_default()
                }
                Some(rest) => rest,
                None => "",
            }
        }
        Some((_, '\u{30}'..='\u{7e}')) => chars.as_str(),
        Some(_) | None => text,
    }
}

/// After `ESC [`: parameters, intermediates, one final character.
fn after_sequence(text: &str) -> &str {
    let Some(end) = text.find(|c| !matches!(c, '\u{20}'..='\u{3f}')) else {
        return "";
    };
    let rest = text.get(end..).unwrap_or_default();
    match rest.chars().next() {
        Some('\u{40}'..='\u{7e}') => rest.get(1..).unwrap_or_default(),
        _ => rest,
    }
}

/// After `ESC ]` and its like: up to BEL or `ESC \`.
fn after_string(text: &str) -> &str {
    let end = text
        .char_indices()
        .take_while(|(at, c)| *at < CONTROL_STRING_LIMIT && *c != '\n')
        .find(|(_, c)| matches!(c, '\u{7}' | '\u{1b}' | '\u{9c}'));
    match end {
        Some((at, '\u{1b}')) => {
            let rest = text.get(at + 1..).unwrap_or_default();
            rest.strip_prefix('\\')
                .unwrap_or_else(|| after_escape(rest))
        }
        Some((at, c)) => text.get(at + c.len_utf8()..).unwrap_or_default(),
        None => text,
    }
}

/// Head and tail of a text, `limit` bytes at most, with a line between them that says how much is
/// left out.
pub(crate) fn abridge(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    join(text, text, text.len(), limit)
}

/// The same, when only the beginning and the end of `length` bytes are at hand.
pub(crate) fn join(head: &str, tail: &str, length: usize, limit: usize) -> String {
    let room = limit.saturating_sub(160) / 2;
    let head = head_of(head, room);
    let tail = tail_of(tail, room);
    let left_out = length.saturating_sub(head.len() + tail.len());
    format!(
        "{head}\n[… about {left_out} of {length} bytes are left out here; the whole output is kept and shown to the person …]\n{tail}"
    )
}

/// At most `room` bytes from the front, whole lines if there are any.
fn head_of(text: &str, room: usize) -> &str {
    let cut = text.get(..text.floor_char_boundary(room)).unwrap_or(text);
    match cut.rfind('\n') {
        Some(end) if cut.len() < text.len() && end > room / 2 => cut.get(..end).unwrap_or(cut),
        _ => cut,
    }
}

/// At most `room` bytes from the back, whole lines if there are any.
fn tail_of(text: &str, room: usize) -> &str {
    let from = text.ceil_char_boundary(text.len().saturating_sub(room));
    let cut = text.get(from..).unwrap_or(text);
    match cut.find('\n') {
        Some(end) if from > 0 && end < room / 2 => cut.get(end + 1..).unwrap_or(cut),
        _ => cut,
    }
}

/// Bytes that come in pieces, as text that is never split inside a character.
#[derive(Debug, Default)]
pub struct Pieces {
    open: Vec<u8>,
}

impl Pieces {
    /// The text of this piece, with what the last one left open.
    pub fn push(&mut self, piece: &[u8]) -> String {
        self.open.extend_from_slice(piece);
        // A character has at most four bytes: only the last three can be an open one.
        let keep = (1..=3.min(self.open.len()))
            .find(|back| {
                let byte = self.open.get(self.open.len() - back).copied();
                byte.is_some_and(|byte| match byte {
                    0xf0..=0xf7 => *back < 4,
                    0xe0..=0xef => *back < 3,
                    0xc0..=0xdf => *back < 2,
                    _ => false,
                })
            })
            .unwrap_or(0);
        let rest = self.open.split_off(self.open.len() - keep);
        let text = String::from_utf8_lossy(&self.open).into_owned();
        self.open = rest;
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c11_any_bytes_become_valid_visible_text() {
        assert_eq!(visible(b"a\0b"), "a\u{2400}b");
        assert_eq!(
            visible(b"\xd6\xd0\xce\xc4"),
            "\u{fffd}\u{fffd}\u{fffd}\u{fffd}"
        );
        assert_eq!(visible(b"\xff\xfeh\0i\0"), "hi");
        assert_eq!(visible(b"\xfe\xff\0h\0i"), "hi");
        assert_eq!(visible(b"\xff\xfe\x00\xd8"), "\u{fffd}");
        assert_eq!(visible("\u{2028}\u{1f600}".as_bytes()), "\u{2028}\u{1f600}");
    }

    #[test]
    fn terminal_codes_go_and_tabs_stay() {
        let colour = "\u{1b}[1;31mred\u{1b}[0m\tand \u{1b}]0;title\u{7}plain\u{1b}(B\r\nend\rnow";
        assert_eq!(clean(colour), "red\tand plain\nend\nnow");
        assert_eq!(
            clean("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\"),
            "link"
        );
        assert_eq!(clean("abc\u{8}d"), "abd");
    }

    #[test]
    fn an_open_control_string_swallows_nothing() {
        assert_eq!(clean("\u{1b}]0;never closed\nnext"), "0;never closed\nnext");
        let long = format!("\u{1b}]{}\u{7}", "x".repeat(10_000));
        assert!(clean(&long).len() >= 10_000);
    }

    #[test]
    fn a_bounded_text_has_head_and_tail_and_says_what_is_missing() {
        let text: String = (0..10_000).map(|n| format!("line {n} é\n")).collect();
        let short = abridge(&text, 4096);
        assert!(short.len() <= 4096, "{}", short.len());
        assert!(short.starts_with("line 0 é\n") && short.ends_with("line 9999 é\n"));
        assert!(short.contains(&format!("of {} bytes are left out", text.len())));
        assert_eq!(abridge("short", 4096), "short");
    }

    #[test]
    fn pieces_are_never_split_inside_a_character() {
        let text = "a中\u{1f600}é";
        for size in 1..5 {
            let mut pieces = Pieces::default();
            let out: Vec<String> = text
                .as_bytes()
                .chunks(size)
                .map(|p| pieces.push(p))
                .collect();
            assert_eq!(out.concat(), text, "{size}");
        }
    }
}
