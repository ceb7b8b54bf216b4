//! `glob` and `grep`.
//!
//! Guarantees: no link is followed, so no search leaves the workspace; the program's own data and
//! `.git` are left out; results are sorted and bounded, and say so when they are cut.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::sinks::Lossy;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use ignore::WalkBuilder;
use tokio_util::sync::CancellationToken;

use crate::arguments;
use crate::error::ToolError;
use crate::text::clean;
use crate::workspace::{Resolved, Workspace, slashed};

/// Paths that one `glob` returns.
const PATH_LIMIT: usize = 1000;
/// Lines that one `grep` returns.
const LINE_LIMIT: usize = 500;
/// Characters of a line that are shown.
const LINE_WIDTH: usize = 400;
/// Compiled size of a regular expression, bytes.
const REGEX_LIMIT: usize = 4 * 1024 * 1024;

/// A prepared `glob`.
#[derive(Debug, Clone)]
pub(crate) struct GlobSearch {
    base: Resolved,
    matcher: GlobMatcher,
}

impl GlobSearch {
    pub(crate) fn prepare(
        arguments: &arguments::Glob,
        workspace: &Workspace,
    ) -> Result<Self, ToolError> {
        let base = workspace.resolve(arguments.path.as_deref().unwrap_or("."))?;
        let matcher = glob(arguments.pattern.trim_start_matches("./"))?;
        Ok(Self { base, matcher })
    }

    pub(crate) fn run(
        &self,
        workspace: &Workspace,
        cancel: &CancellationToken,
    ) -> Result<String, ToolError> {
        let mut text = String::new();
        let mut count = 0;
        let mut more = false;
        for found in files(workspace, &self.base, cancel)? {
            let found = found?;
            let inside = found.strip_prefix(&self.base.absolute).unwrap_or(&found);
            if !self.matcher.is_match(inside) {
                continue;
            }
            if count == PATH_LIMIT {
                more = true;
                break;
            }
            count += 1;
            text.push_str(&clean(&shown(workspace, &found)).replace('\n', "\u{240a}"));
            text.push('\n');
        }
        if count == 0 {
            text.push_str("[no file matches]\n");
        }
        if more {
            text.push_str(&format!(
                "[more than {PATH_LIMIT} files match; use a narrower pattern or path]\n"
            ));
        }
        Ok(text)
    }
}

/// A prepared `grep`.
#[derive(Debug, Clone)]
pub(crate) struct GrepSearch {
    base: Resolved,
    matcher: RegexMatcher,
    glob: Option<NameGlob>,
}

/// A glob without `/` is about the name, one with it about the path in the searched folder.
#[derive(Debug, Clone)]
struct NameGlob {
    matcher: GlobMatcher,
    by_name: bool,
}

impl GrepSearch {
    pub(crate) fn prepare(
        arguments: &arguments::Grep,
        workspace: &Workspace,
    ) -> Result<Self, ToolError> {
        let base = workspace.resolve(arguments.path.as_deref().unwrap_or("."))?;
        let matcher = RegexMatcherBuilder::new()
            // `$` stands before `\r\n` too.
            .crlf(true)
            .size_limit(REGEX_LIMIT)
            .dfa_size_limit(REGEX_LIMIT)
            .build(&arguments.pattern)
            .map_err(|error| ToolError::PatternInvalid {
                pattern: arguments.pattern.clone(),
                reason: error.to_string(),
            })?;
        let glob = match &arguments.glob {
            Some(pattern) => Some(NameGlob {
                matcher: glob(pattern.trim_start_matches("./"))?,
                by_name: !pattern.contains('/'),
            }),
            None => None,
        };
        Ok(Self {
            base,
            matcher,
            glob,
        })
    }

    pub(crate) fn run(
        &self,
        workspace: &Workspace,
        cancel: &CancellationToken,
    ) -> Result<String, ToolError> {
        let mut searcher = SearcherBuilder::new()
            .binary_detection(BinaryDetection::quit(0))
            .line_terminator(LineTerminator::crlf())
            .line_number(true)
            .heap_limit(Some(64 * 1024 * 1024))
            .build();
        let mut lines = Lines::default();
        let mut skipped = 0usize;
        if self.base.exists && !self.base.absolute.is_dir() {
            // Asked for by name: an error is an answer.
            self.search(workspace, &self.base, &mut searcher, &mut lines, cancel)?;
        } else {
            for found in files(workspace, &self.base, cancel)? {
                let found = found?;
                if !self.wants(&found) {
                    continue;
                }
                let place = Resolved::found(workspace, found);
                match self.search(workspace, &place, &mut searcher, &mut lines, cancel) {
                    Ok(()) => {}
                    Err(ToolError::Cancelled) => return Err(ToolError::Cancelled),
                    // Gone meanwhile, or not readable: the others still count, and it is said.
                    Err(_) => skipped += 1,
                }
                if lines.more {
                    break;
                }
            }
        }
        let mut text = lines.text;
        if lines.count == 0 {
            text.push_str("[no line matches]\n");
        }
        if lines.more {
            text.push_str(&format!(
                "[more than {LINE_LIMIT} lines match; use a narrower pattern, path or glob]\n"
            ));
        }
        if skipped > 0 {
            text.push_str(&format!("[{skipped} files could not be read]\n"));
        }
        Ok(text)
    }

    fn wants(&self, found: &Path) -> bool {
        let Some(glob) = &self.glob else {
            return true;
        };
        let inside = found.strip_prefix(&self.base.absolute).unwrap_or(found);
        if glob.by_name {
            inside
                .file_name()
                .is_some_and(|name| glob.matcher.is_match(name))
        } else {
            glob.matcher.is_match(inside)
        }
    }

    fn search(
        &self,
        workspace: &Workspace,
        place: &Resolved,
        searcher: &mut Searcher,
        lines: &mut Lines,
        cancel: &CancellationToken,
    ) -> Result<(), ToolError> {
        let file = workspace.open_file(place)?;
        let path = clean(&place.shown()).replace('\n', "\u{240a}");
        let sink = Lossy(|number, line| {
            if cancel.is_cancelled() {
                return Ok(false);
            }
            Ok(lines.add(&path, number, line))
        });
        let result = searcher.search_reader(&self.matcher, Stoppable { file, cancel }, sink);
        if cancel.is_cancelled() {
            return Err(ToolError::Cancelled);
        }
        result.map_err(|error| ToolError::reading("searching", &place.given, error))
    }
}

#[derive(Debug, Default)]
struct Lines {
    text: String,
    count: usize,
    more: bool,
}

impl Lines {
    /// Adds a line; false when there is no room for more.
    fn add(&mut self, path: &str, number: u64, line: &str) -> bool {
        if self.count == LINE_LIMIT {
            self.more = true;
            return false;
        }
        self.count += 1;
        let line = clean(line.trim_end_matches(['\r', '\n'])).replace('\n', "\u{240a}");
        self.text.push_str(&format!("{path}:{number}:"));
        match line.char_indices().nth(LINE_WIDTH) {
            Some((end, _)) => {
                self.text.push_str(line.get(..end).unwrap_or(&line));
                self.text.push_str(" […]");
            }
            None => self.text.push_str(&line),
        }
        self.text.push('\n');
        true
    }
}

/// A file whose reading ends when the call is stopped.
struct Stoppable<'a> {
    file: fs::File,
    cancel: &'a CancellationToken,
}

impl Read for Stoppable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancel.is_cancelled() {
            return Ok(0);
        }
        self.file.read(buffer)
    }
}

impl Resolved {
    /// A file that a walk found: beneath the root, not behind a link when it was found, and opened
    /// without following one.
    fn found(workspace: &Workspace, path: PathBuf) -> Self {
        let relative = path
            .strip_prefix(workspace.root())
            .unwrap_or(&path)
            .to_path_buf();
        Self {
            given: slashed(&relative),
            relative,
            absolute: path,
            exists: true,
        }
    }
}

fn glob(pattern: &str) -> Result<GlobMatcher, ToolError> {
    GlobBuilder::new(pattern)
        .literal_separator(true)
        .backslash_escape(true)
        .build()
        .map(|glob| glob.compile_matcher())
        .map_err(|error| ToolError::PatternInvalid {
            pattern: pattern.to_owned(),
            reason: error.kind().to_string(),
        })
}

/// Path from the workspace's root.
fn shown(workspace: &Workspace, path: &Path) -> String {
    slashed(path.strip_prefix(workspace.root()).unwrap_or(path))
}

/// All regular files beneath a folder, sorted by path, without ignored ones.
fn files<'a>(
    workspace: &'a Workspace,
    base: &Resolved,
    cancel: &'a CancellationToken,
) -> Result<impl Iterator<Item = Result<PathBuf, ToolError>> + use<'a>, ToolError> {
    if !base.exists {
        return Err(ToolError::NotFound {
            path: base.given.clone(),
        });
    }
    if !base.absolute.is_dir() {
        return Err(ToolError::NotAFolder {
            path: base.given.clone(),
        });
    }
    let jail = workspace.clone();
    let walk = WalkBuilder::new(&base.absolute)
        .follow_links(false)
        .hidden(false)
        .require_git(false)
        .git_global(false)
        .sort_by_file_name(Ord::cmp)
        .filter_entry(move |entry| {
            let name = entry.file_name();
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            name != ".git" && !(is_folder && jail.is_forbidden(entry.path()))
        })
        .build();
    Ok(walk.filter_map(move |entry| {
        if cancel.is_cancelled() {
            return Some(Err(ToolError::Cancelled));
        }
        // A folder that can't be read is passed over, as it is when it is not there.
        let entry = entry.ok()?;
        let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
        is_file.then(|| Ok(entry.into_path()))
    }))
}
