//! The outside ledger: a file to which a tool's effect appends one line, outside of everything that
//! Holdfast keeps. What happened is what stands there.

use std::path::{Path, PathBuf};

/// The word of [`Ledger::append_witnessed`] for a line that had its start record first.
pub const RECORDED: &str = "recorded";

/// A ledger file.
#[derive(Debug, Clone)]
pub struct Ledger {
    path: PathBuf,
}

impl Ledger {
    /// A ledger at this path; the file comes into being with its first line.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A piece of POSIX shell that appends one line and syncs it. When it has ended, the line is
    /// durable.
    #[must_use]
    pub fn append(&self, line: &str) -> String {
        let file = quoted(&self.path.to_string_lossy());
        format!("printf '%s\\n' {} >> {file} && sync {file}", quoted(line))
    }

    /// As [`Self::append`], with two words behind the line: the attempt's id, and whether its start
    /// record stood in that session log before the line was written ([`RECORDED`], or another word).
    #[must_use]
    pub fn append_witnessed(&self, line: &str, log: &Path) -> String {
        let file = quoted(&self.path.to_string_lossy());
        let log = quoted(&log.to_string_lossy());
        format!(
            "if grep -q '\"kind\":\"tool_started\"'\".*$HOLDFAST_ATTEMPT_ID\" {log}; \
             then was={RECORDED}; else was=unrecorded; fi; \
             printf '%s %s %s\\n' {} \"$HOLDFAST_ATTEMPT_ID\" \"$was\" >> {file} && sync {file}",
            quoted(line)
        )
    }

    /// All whole lines, in order; none when the file does not exist.
    ///
    /// # Panics
    /// When the file can't be read, or ends in the middle of a line.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let text = match std::fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
            Err(error) => panic!("the ledger can't be read: {error}"),
        };
        assert!(
            text.is_empty() || text.ends_with('\n'),
            "the ledger ends in the middle of a line: {text:?}"
        );
        text.lines().map(str::to_owned).collect()
    }

    /// How often this line stands there: how often the effect happened.
    #[must_use]
    pub fn count(&self, line: &str) -> usize {
        self.lines().iter().filter(|have| *have == line).count()
    }
}

/// Quotes a word for a POSIX shell.
#[must_use]
pub fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
