//! Which test proves which rule. docs/conformance.md is the table; this is the proof that it is true.
//!
//! Guarantees: every test that is named after a rule is in the table, every row's test exists in the
//! file that it names, and every rule that is in force has a test. The rules are in rules.json.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::sources::{assert_none, sources, text};

const TABLE: &str = "docs/conformance.md";
const MEND: &str = "write the table anew with `npm run conformance`";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Rule {
    rule: String,
    in_force: bool,
    title: String,
}

/// A test and the rule that its name begins with.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Proof {
    rule: String,
    test: String,
    file: String,
}

fn rules() -> Vec<Rule> {
    serde_json::from_str(&text("tests/acceptance/rules.json")).unwrap()
}

/// `tr_05_…` → `TR-05`, `c10_…` → `C10`.
fn rule_of(test: &str) -> Option<String> {
    let two_digits = |rest: &str| {
        let (digits, tail) = rest.split_at_checked(2)?;
        (digits.bytes().all(|byte| byte.is_ascii_digit()) && tail.starts_with(['_', ' ']))
            .then(|| digits.to_owned())
    };
    for (prefix, family) in [("tr_", "TR-"), ("rs_", "RS-"), ("sv_", "SV-"), ("c", "C")] {
        if let Some(digits) = test.strip_prefix(prefix).and_then(two_digits) {
            return Some(format!("{family}{digits}"));
        }
    }
    None
}

/// The names of a file's tests.
fn tests_in(source: &str) -> Vec<&str> {
    let mut marked = false;
    let mut names = Vec::new();
    for line in source.lines().map(str::trim) {
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            marked = true;
        } else if marked && let Some((_, rest)) = line.split_once("fn ") {
            marked = false;
            names.extend(rest.split(['(', '<']).next());
        }
    }
    names
}

/// The names of the tests of a script or page: `test('…')`.
fn page_tests_in(source: &str) -> Vec<&str> {
    source
        .match_indices("test(")
        .filter(|(place, _)| {
            let before = source[..*place].chars().next_back();
            before.is_none_or(|c| !c.is_alphanumeric() && c != '_')
        })
        .filter_map(|(place, call)| {
            let rest = source[place + call.len()..].trim_start();
            let quote = rest.chars().next().filter(|c| "'\"`".contains(*c))?;
            rest[1..].split_once(quote).map(|(name, _)| name)
        })
        .filter(|name| !name.contains('\n'))
        .collect()
}

fn in_the_sources() -> BTreeSet<Proof> {
    let is_page_test = |name: &str| {
        [".test.ts", ".test.mjs", ".spec.ts", ".spec.mjs"]
            .iter()
            .any(|ending| name.ends_with(ending))
    };
    sources(&["rs", "ts", "mjs"])
        .iter()
        .flat_map(|source| {
            let names = if source.is("rs") {
                tests_in(&source.text)
            } else if is_page_test(&source.name) {
                page_tests_in(&source.text)
            } else {
                Vec::new()
            };
            names.into_iter().filter_map(|test| {
                Some(Proof {
                    rule: rule_of(test)?,
                    test: test.to_owned(),
                    file: source.name.clone(),
                })
            })
        })
        .collect()
}

/// The rows that name a test: `| rule | what it says | test | file |`.
fn in_the_table() -> BTreeSet<Proof> {
    text(TABLE)
        .lines()
        .filter_map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let [rule, _, test, file] = cells[..] else {
                return None;
            };
            let test = test.strip_prefix('`')?.strip_suffix('`')?;
            Some(Proof {
                rule: rule.to_owned(),
                test: test.to_owned(),
                file: file.to_owned(),
            })
        })
        .collect()
}

#[test]
fn the_table_and_the_sources_agree() {
    let sources = in_the_sources();
    let table = in_the_table();
    let findings: Vec<String> = sources
        .difference(&table)
        .map(|proof| format!("not in the table: {} in {}", proof.test, proof.file))
        .chain(
            table
                .difference(&sources)
                .map(|proof| format!("not in the sources: {} in {}", proof.test, proof.file)),
        )
        .collect();
    assert_none(&format!("{TABLE} is not up to date; {MEND}"), &findings);
}

#[test]
fn every_rule_in_force_has_a_test() {
    let proven: BTreeSet<String> = in_the_sources()
        .into_iter()
        .map(|proof| proof.rule)
        .collect();
    let findings: Vec<String> = rules()
        .into_iter()
        .filter(|rule| rule.in_force && !proven.contains(&rule.rule))
        .map(|rule| format!("{} {}", rule.rule, rule.title))
        .collect();
    assert_none("rules in force without a test", &findings);
}

#[test]
fn every_named_rule_exists_and_is_listed_once() {
    let rules = rules();
    let known: BTreeSet<&str> = rules.iter().map(|rule| rule.rule.as_str()).collect();
    assert_eq!(known.len(), rules.len(), "a rule is listed twice");
    let findings: Vec<String> = in_the_sources()
        .iter()
        .filter(|proof| !known.contains(proof.rule.as_str()))
        .map(|proof| format!("{} in {}", proof.test, proof.file))
        .collect();
    assert_none("tests of a rule that does not exist", &findings);
}

#[test]
fn rules_and_tests_are_recognised() {
    assert_eq!(rule_of("tr_05_order_is_strict").as_deref(), Some("TR-05"));
    assert_eq!(rule_of("c10_cut_log").as_deref(), Some("C10"));
    assert_eq!(rule_of("c1_cut"), None);
    assert_eq!(rule_of("cancel_is_prompt"), None);
    assert_eq!(rule_of("tr_é5_x"), None);
    let source = "#[test]\nfn plain() {}\nfn no_test() {}\n\
        #[tokio::test(flavor = \"multi_thread\")]\n// why\n#[cfg(unix)]\nasync fn tr_01_x() {}\n";
    assert_eq!(tests_in(source), ["plain", "tr_01_x"]);
    let page = "test('rs_22 it', () => {});\n  test(\n    \"c02 that\",\n  );\nattest('no');";
    assert_eq!(page_tests_in(page), ["rs_22 it", "c02 that"]);
    assert_eq!(rule_of("rs_22 it").as_deref(), Some("RS-22"));
}
