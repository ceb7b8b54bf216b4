//! The plan of a write: what the file is now, what it will be, and whether it may be written.
//!
//! Guarantee: planning writes nothing. The content to publish is complete before a person is asked.

use std::io::Read;

use holdfast_domain::canonical::sha256_hex;
use holdfast_domain::recovery::file::FileIntent;
use similar::TextDiff;

use crate::digest::digest_of;
use crate::edit::{Edit, apply_edits};
use crate::error::ToolError;
use crate::text::{Encoding, clean, decode};
use crate::workspace::{Resolved, Workspace};

/// Bytes of a file that can be edited, or compared for a diff.
const EDIT_LIMIT: u64 = 8 * 1024 * 1024;
/// Bytes of a diff on a card.
const DIFF_LIMIT: usize = 64 * 1024;

/// A write that may be published.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) place: Resolved,
    pub(crate) intent: FileIntent,
    pub(crate) content: Vec<u8>,
    pub(crate) diff: Option<String>,
}

/// Plans `write_file`.
pub(crate) fn write(workspace: &Workspace, path: &str, content: &str) -> Result<Plan, ToolError> {
    let place = workspace.resolve_for_writing(path)?;
    let now = Now::of(workspace, &place)?;
    Ok(now.plan(place, content.as_bytes().to_vec()))
}

/// Plans `edit_file`: all edits are applied in memory.
pub(crate) fn edit(workspace: &Workspace, path: &str, edits: &[Edit]) -> Result<Plan, ToolError> {
    let place = workspace.resolve_for_writing(path)?;
    if !place.exists {
        return Err(ToolError::NotFound {
            path: path.to_owned(),
        });
    }
    let now = Now::of(workspace, &place)?;
    let text = now.editable(path)?;
    let after = apply_edits(text, edits).map_err(|(index, fault)| ToolError::Edit {
        path: path.to_owned(),
        number: index + 1,
        count: edits.len(),
        fault,
    })?;
    Ok(now.plan(place, after.into_bytes()))
}

/// A file as it is.
struct Now {
    exists: bool,
    size: u64,
    digest: String,
    /// Absent when there is no file, or more than [`EDIT_LIMIT`].
    bytes: Option<Vec<u8>>,
}

impl Now {
    fn of(workspace: &Workspace, place: &Resolved) -> Result<Self, ToolError> {
        if !place.exists {
            return Ok(Self {
                exists: false,
                size: 0,
                digest: String::new(),
                bytes: None,
            });
        }
        let mut file = workspace.open_file(place)?;
        let failed = |error| ToolError::reading("reading", &place.given, error);
        let meta = file.metadata().map_err(failed)?;
        if meta.permissions().readonly() {
            return Err(ToolError::FileReadOnly {
                path: place.given.clone(),
            });
        }
        let (digest, bytes) = if meta.len() > EDIT_LIMIT {
            (digest_of(&file).map_err(failed)?, None)
        } else {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map_err(failed)?;
            (sha256_hex(&bytes), Some(bytes))
        };
        Ok(Self {
            exists: true,
            size: meta.len(),
            digest,
            bytes,
        })
    }

    fn editable(&self, path: &str) -> Result<&str, ToolError> {
        let Some(bytes) = &self.bytes else {
            return Err(ToolError::FileTooLarge {
                path: path.to_owned(),
                bytes: self.size,
                limit: EDIT_LIMIT,
            });
        };
        let not_text = |reason| ToolError::FileNotText {
            path: path.to_owned(),
            reason,
        };
        match decode(bytes).1 {
            Encoding::Utf8 => std::str::from_utf8(bytes).map_err(|_| not_text("it is not UTF-8")),
            Encoding::Utf16 => Err(not_text("it is UTF-16")),
            Encoding::Other if bytes.contains(&0) => Err(not_text("it is binary")),
            Encoding::Other => Err(not_text("it is not UTF-8")),
        }
    }

    fn plan(self, place: Resolved, content: Vec<u8>) -> Plan {
        let is_text = match &self.bytes {
            Some(bytes) => std::str::from_utf8(bytes).is_ok(),
            None => !self.exists,
        };
        let intent = FileIntent {
            version: 1,
            path: place.given.clone(),
            resolved_path: place.text(),
            before: self.digest,
            after: sha256_hex(&content),
            encoding: if is_text { "utf-8" } else { "binary" }.to_owned(),
            existed: self.exists,
        };
        let diff = (is_text && content.len() as u64 <= EDIT_LIMIT).then(|| {
            diff(
                &place.shown(),
                self.exists,
                &self.bytes.unwrap_or_default(),
                &content,
            )
        });
        Plan {
            place,
            intent,
            content,
            diff,
        }
    }
}

fn diff(path: &str, existed: bool, before: &[u8], after: &[u8]) -> String {
    let (before, after) = (decode(before).0, decode(after).0);
    let old = if existed {
        format!("a/{path}")
    } else {
        "/dev/null".to_owned()
    };
    let diff = TextDiff::configure()
        .timeout(std::time::Duration::from_millis(500))
        .diff_lines(before.as_ref(), after.as_ref())
        .unified_diff()
        .context_radius(3)
        .header(&old, &format!("b/{path}"))
        .to_string();
    let diff = clean(&diff);
    if diff.len() <= DIFF_LIMIT {
        return diff;
    }
    let cut = diff
        .get(..diff.floor_char_boundary(DIFF_LIMIT))
        .unwrap_or_default();
    let cut = cut
        .rfind('\n')
        .and_then(|end| cut.get(..end))
        .unwrap_or(cut);
    format!(
        "{cut}\n[the diff is cut here: {} bytes in all]\n",
        diff.len()
    )
}
