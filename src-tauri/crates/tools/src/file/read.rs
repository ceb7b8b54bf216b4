//! `read_file`.

use std::io::Read;

use crate::error::ToolError;
use crate::text::{Encoding, clean, decode};
use crate::workspace::{Resolved, Workspace};

/// Bytes of text that one call returns.
const TEXT_LIMIT: usize = 256 * 1024;
/// Bytes of a file that are looked at; lines after them need a command.
const FILE_LIMIT: u64 = 64 * 1024 * 1024;

/// Lines `offset` (from 1) to `offset + limit`, less when the bound in bytes comes first.
pub(crate) fn read(
    workspace: &Workspace,
    place: &Resolved,
    offset: u64,
    limit: u64,
) -> Result<String, ToolError> {
    let file = workspace.open_file(place)?;
    let mut bytes = Vec::new();
    file.take(FILE_LIMIT + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| ToolError::reading("reading", &place.given, error))?;
    let cut_file = bytes.len() as u64 > FILE_LIMIT;
    bytes.truncate(usize::try_from(FILE_LIMIT).unwrap_or(usize::MAX));
    let (text, encoding) = decode(&bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);

    let mut notes = Vec::new();
    match encoding {
        Encoding::Utf8 => {}
        Encoding::Utf16 => notes.push("the file is UTF-16 and is shown decoded; edit_file can't edit it".to_owned()),
        Encoding::Other if bytes.contains(&0) => notes.push(format!(
            "the file is binary ({} bytes); what is not text is shown replaced",
            bytes.len()
        )),
        Encoding::Other => notes.push(
            "the file is not UTF-8; bytes that are not are shown as \u{fffd}; edit_file can't edit it"
                .to_owned(),
        ),
    }
    if cut_file {
        notes.push(format!(
            "only the first {FILE_LIMIT} bytes of the file are looked at"
        ));
    }

    let skip = usize::try_from(offset.saturating_sub(1)).unwrap_or(usize::MAX);
    let take = usize::try_from(limit).unwrap_or(usize::MAX);
    let total = text.lines().count();
    if skip > 0 && skip >= total {
        return Ok(format!(
            "[the file has {total} lines; there is no line {offset}]\n"
        ));
    }
    let mut part = String::new();
    let mut shown = 0;
    for line in text.split_inclusive('\n').skip(skip).take(take) {
        let line = clean_file(line);
        if part.len() + line.len() > TEXT_LIMIT {
            if shown == 0 {
                part.push_str(
                    line.get(..line.floor_char_boundary(TEXT_LIMIT))
                        .unwrap_or_default(),
                );
                shown = 1;
                notes.push(format!(
                    "line {offset} is longer than {TEXT_LIMIT} bytes and is cut"
                ));
            }
            break;
        }
        part.push_str(&line);
        shown += 1;
    }
    if skip > 0 || skip + shown < total {
        let mut note = format!("lines {}–{} of {total}", skip + 1, skip + shown);
        if skip + shown < total {
            note.push_str(&format!("; go on with offset {}", skip + shown + 1));
        }
        notes.insert(0, note);
    }
    if total == 0 {
        notes.push("the file is empty".to_owned());
    }
    Ok(if notes.is_empty() {
        part
    } else {
        format!("[{}]\n{part}", notes.join("; "))
    })
}

/// A file's text as it is, so that edits match it: only line ends and NUL are made plain. Escape
/// codes are content here, and become pictures.
fn clean_file(line: &str) -> String {
    let line = line
        .strip_suffix("\r\n")
        .map_or_else(|| line.to_owned(), |line| format!("{line}\n"));
    if line
        .chars()
        .any(|c| c.is_control() && !matches!(c, '\n' | '\t'))
    {
        clean(
            &line
                .replace('\u{1b}', "\u{241b}")
                .replace('\u{8}', "\u{2408}"),
        )
    } else {
        line
    }
}
