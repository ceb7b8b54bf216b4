//! The style of the checkout, as far as a program can see it.
//!
//! Each test names all findings at once, with their place and what to do.

use std::collections::BTreeSet;

use crate::sources::{Source, assert_none, code_of, root, sources, text};

/// The most lines of a file that is not a test.
const MOST_LINES: usize = 600;

/// What may lie at the top, dotfiles besides.
const TOP_LEVEL: &[&str] = &[
    "Cargo.toml",
    "Cargo.lock",
    "package.json",
    "package-lock.json",
    "README.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
    "src-tauri",
    "ui",
    "bench",
    "tests",
    "docs",
];

/// Built or downloaded, and ignored by git.
const TOP_LEVEL_IGNORED: &[&str] = &["target", "node_modules", "dist"];

#[test]
fn every_file_says_what_it_is_for() {
    let findings: Vec<String> = sources(&["rs", "mjs"])
        .iter()
        .filter(|source| {
            let mut lines = source.text.lines();
            let mut first = lines.next().unwrap_or_default();
            if first.starts_with("#!/") {
                first = lines.next().unwrap_or_default();
            }
            if source.is("rs") {
                !(first.starts_with("//!") && first.len() > "//! ".len())
            } else {
                !(first.starts_with("// ") || first.starts_with("/**"))
            }
        })
        .map(|source| source.name.clone())
        .collect();
    assert_none("files without a header comment", &findings);
}

/// Nobody reads these from top to bottom.
const WRITTEN_BY_PROGRAMS: &str = "ui/src/bindings/";

#[test]
fn files_stay_small() {
    let findings: Vec<String> = sources(&["rs", "mjs", "ts", "svelte"])
        .iter()
        .filter(|source| !source.is_test() && !source.name.starts_with(WRITTEN_BY_PROGRAMS))
        .filter_map(|source| {
            let lines = source.text.lines().count();
            (lines > MOST_LINES).then(|| format!("{}: {lines} lines", source.name))
        })
        .collect();
    assert_none("files over 600 lines; split them by subject", &findings);
}

#[test]
fn modules_are_nouns() {
    let findings: Vec<String> = sources(&["rs", "mjs", "ts"])
        .iter()
        .filter(|source| {
            source.name.ends_with("/mod.rs")
                || source.name.split(['/', '_', '-', '.']).any(|word| {
                    matches!(
                        word,
                        "manager" | "managers" | "helper" | "helpers" | "util" | "utils"
                    )
                })
        })
        .map(|source| source.name.clone())
        .collect();
    assert_none(
        "mod.rs, or names that say nothing; name the subject",
        &findings,
    );
}

#[test]
fn nothing_is_left_for_later() {
    // Put together here so that this file does not find itself.
    let words = [
        concat!("to", "do!("),
        concat!("unimple", "mented!("),
        concat!("#[", "ignore"),
        concat!("FIX", "ME"),
        concat!("XX", "X:"),
    ];
    let findings = lines_with(&sources(&["rs", "mjs"]), |line| {
        words.iter().any(|word| line.contains(word))
    });
    assert_none("unfinished places", &findings);
}

#[test]
fn tests_wait_for_conditions() {
    let sleeps = [concat!("thread::sl", "eep("), concat!("time::sl", "eep(")];
    let tests: Vec<Source> = sources(&["rs"])
        .into_iter()
        .filter(|source| source.is_test() && !source.name.contains("crates/testkit/src/"))
        .collect();
    let findings = lines_with(&tests, |line| {
        let code = code_of(line);
        sleeps.iter().any(|sleep| code.contains(sleep))
    });
    assert_none(
        "sleeps in tests; wait for what is meant, with a deadline",
        &findings,
    );
}

#[test]
fn syncing_is_known_in_one_crate() {
    let calls = [
        concat!(".sync", "_all()"),
        concat!(".sync", "_data()"),
        concat!("fs::f", "sync("),
        concat!("fs::fdata", "sync("),
    ];
    let elsewhere: Vec<Source> = sources(&["rs"])
        .into_iter()
        .filter(|source| !source.name.starts_with("src-tauri/crates/files/") && !source.is_test())
        .collect();
    let findings = lines_with(&elsewhere, |line| {
        let code = code_of(line);
        calls.iter().any(|call| code.contains(call))
    });
    assert_none("syncs outside holdfast-files", &findings);
}

#[test]
fn no_path_of_one_machine_is_written_down() {
    let places = [
        concat!("/wo", "rk/"),
        concat!("/ro", "ot/"),
        concat!("/home/", "runner"),
        concat!("C:\\Us", "ers\\"),
    ];
    let findings = lines_with(&sources(&[]), |line| {
        places.iter().any(|place| line.contains(place))
    });
    assert_none("paths of one machine", &findings);
}

#[test]
fn the_top_level_holds_only_what_belongs_there() {
    let findings: Vec<String> = std::fs::read_dir(root())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| {
            let listed = [TOP_LEVEL, TOP_LEVEL_IGNORED].concat();
            !name.starts_with('.') && !listed.contains(&name.as_str())
        })
        .collect();
    assert_none("entries that don't belong at the top", &findings);
}

#[test]
fn every_environment_variable_is_documented() {
    const PAGE: &str = "docs/ENVIRONMENT.md";
    let everything = sources(&["rs", "mjs", "ts"]);
    // What a test makes up for itself is nobody's interface; what the test tools read is.
    let used: BTreeSet<String> = everything
        .iter()
        .filter(|source| !source.name.starts_with("tests/") && !source.name.contains("/tests/"))
        .flat_map(|source| variables(without_unit_tests(&source.text)))
        .collect();
    let named: BTreeSet<String> = everything
        .iter()
        .flat_map(|source| variables(&source.text))
        .collect();
    let documented: BTreeSet<String> = variables(&text(PAGE)).collect();
    let findings: Vec<String> = used
        .difference(&documented)
        .map(|name| format!("{name} is used but is not in {PAGE}"))
        .chain(
            documented
                .difference(&named)
                .map(|name| format!("{name} is in {PAGE} but nothing uses it")),
        )
        .collect();
    assert_none("environment variables", &findings);
}

/// A file up to its own unit tests, which stand at its end.
fn without_unit_tests(text: &str) -> &str {
    text.find("#[cfg(test)]\nmod ")
        .map_or(text, |start| &text[..start])
}

/// The names that begin with one of the project's two prefixes and go on.
fn variables(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'))
        .filter(|word| {
            [concat!("HOLD", "FAST_"), concat!("REA", "SONIX_")]
                .iter()
                .any(|prefix| word.len() > prefix.len() && word.starts_with(prefix))
        })
        .map(|word| word.trim_end_matches('_').to_owned())
}

#[test]
fn every_named_dependency_is_used() {
    let everything = sources(&["rs", "toml"]);
    let mut findings = Vec::new();
    for manifest in everything
        .iter()
        .filter(|source| source.name.ends_with("/Cargo.toml"))
    {
        let folder = manifest.name.trim_end_matches("Cargo.toml");
        for name in dependencies(&manifest.text) {
            let identifier = name.replace('-', "_");
            let used = everything
                .iter()
                .filter(|source| source.is("rs") && source.name.starts_with(folder))
                .any(|source| {
                    source.text.lines().any(|line| {
                        code_of(line)
                            .split(|c: char| !(c.is_alphanumeric() || c == '_'))
                            .any(|word| word == identifier)
                    })
                });
            if !used {
                findings.push(format!("{}: {name}", manifest.name));
            }
        }
    }
    assert_none("dependencies that no file of their crate uses", &findings);
}

/// The names below every `[…dependencies]` heading of a manifest.
fn dependencies(manifest: &str) -> Vec<&str> {
    let mut inside = false;
    let mut names = Vec::new();
    for line in manifest.lines() {
        if let Some(heading) = line.strip_prefix('[') {
            inside = heading.trim_end().ends_with("dependencies]");
        } else if inside
            && let Some((name, _)) = line.split_once(['=', '.'])
            && !line.starts_with('#')
        {
            names.push(name.trim());
        }
    }
    names
}

fn lines_with(sources: &[Source], wanted: impl Fn(&str) -> bool) -> Vec<String> {
    sources
        .iter()
        .flat_map(|source| {
            source
                .text
                .lines()
                .enumerate()
                .filter(|(_, line)| wanted(line))
                .map(|(index, line)| format!("{}:{}: {}", source.name, index + 1, line.trim()))
        })
        .collect()
}
