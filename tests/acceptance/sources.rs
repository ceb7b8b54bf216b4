//! The checkout as the tests of it see it: every file that belongs to the project, by name and text.
//!
//! Guarantees: names are relative to the checkout and use `/` everywhere; built, downloaded and
//! hidden working folders are left out; the order is stable.

use std::path::{Path, PathBuf};

/// One file of the checkout.
pub(crate) struct Source {
    /// Relative to the checkout, with `/`.
    pub(crate) name: String,
    /// The text; what is not UTF-8 is replaced.
    pub(crate) text: String,
}

impl Source {
    pub(crate) fn is(&self, extension: &str) -> bool {
        Path::new(&self.name)
            .extension()
            .is_some_and(|found| found == extension)
    }

    /// Whether this is the source of a test, a benchmark or of the tools that they use.
    pub(crate) fn is_test(&self) -> bool {
        self.name.starts_with("tests/")
            || self.name.starts_with("bench/")
            || self.name.contains("/tests/")
            || self.name.contains("crates/testkit/")
    }
}

/// Folders that are built, downloaded or another program's own.
const LEFT_OUT: &[&str] = &[".git", "target", "node_modules", "dist", ".holdfast-tool"];

pub(crate) fn root() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().unwrap_or(tests).to_path_buf()
}

/// Every file of the checkout whose name ends in one of these; all text files for an empty list.
pub(crate) fn sources(extensions: &[&str]) -> Vec<Source> {
    let root = root();
    let mut found = Vec::new();
    collect(&root, &root, extensions, &mut found);
    assert!(!found.is_empty(), "no file found below {}", root.display());
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

fn collect(root: &Path, folder: &Path, extensions: &[&str], found: &mut Vec<Source>) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if LEFT_OUT.contains(&name.as_str()) {
            continue;
        }
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            collect(root, &path, extensions, found);
        } else if kind.is_file()
            && (extensions.is_empty()
                || path
                    .extension()
                    .is_some_and(|own| extensions.iter().any(|wanted| own == *wanted)))
        {
            // A file that another process has just replaced or removed is not there; that is fine.
            let Ok(bytes) = std::fs::read(&path) else {
                continue;
            };
            if bytes.contains(&0) && extensions.is_empty() {
                continue;
            }
            let relative = path.strip_prefix(root).unwrap();
            let parts: Vec<_> = relative
                .components()
                .map(|part| part.as_os_str().to_string_lossy())
                .collect();
            found.push(Source {
                name: parts.join("/"),
                text: String::from_utf8_lossy(&bytes).replace("\r\n", "\n"),
            });
        }
    }
}

/// A file that has to be there.
pub(crate) fn text(name: &str) -> String {
    std::fs::read_to_string(root().join(name))
        .unwrap_or_else(|error| panic!("{name} can't be read: {error}"))
        .replace("\r\n", "\n")
}

/// The code of a line: without a `//` comment. Strings are kept.
pub(crate) fn code_of(line: &str) -> &str {
    let trimmed = line.trim_start();
    if trimmed.starts_with("//") {
        return "";
    }
    match line.find(" //") {
        Some(at) => &line[..at],
        None => line,
    }
}

/// Fails with all findings at once, one a line.
pub(crate) fn assert_none(what: &str, findings: &[String]) {
    assert!(
        findings.is_empty(),
        "{what}: {}\n  {}",
        findings.len(),
        findings.join("\n  ")
    );
}
