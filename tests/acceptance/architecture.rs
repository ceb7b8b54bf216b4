//! Who may depend on whom. The arrows are in docs/ARCHITECTURE.md; this is their proof.
//!
//! Reads `cargo metadata` of this checkout, offline: what a build uses has been fetched already.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

use crate::sources::{assert_none, code_of, root, sources};

/// The allowed arrows between crates that ship. Every crate that ships has a line.
const ARROWS: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("files", &[]),
    ("sse", &[]),
    ("api", &["domain"]),
    ("journal", &["domain", "files"]),
    ("provider", &["domain", "sse"]),
    ("supervisor", &["domain", "files"]),
    ("tools", &["domain", "files", "supervisor"]),
    (
        "controller",
        &[
            "api",
            "domain",
            "files",
            "journal",
            "provider",
            "supervisor",
            "tools",
        ],
    ),
    ("remote", &["api", "domain", "sse"]),
    ("serve", &["api", "controller", "domain", "files"]),
    (
        "desktop",
        &["api", "controller", "domain", "files", "remote"],
    ),
    (
        "cli",
        &["api", "controller", "desktop", "domain", "files", "serve"],
    ),
    // Of `serve` the local socket alone; the window opens no port.
    (
        "app",
        &["api", "controller", "desktop", "domain", "files", "serve"],
    ),
];

/// Crates that serve tests and measurements. They may use all others, and nothing that ships may
/// use them; `testkit` may be a dev-dependency everywhere.
const FOR_TESTS: &[&str] = &["testkit", "acceptance", "bench"];

/// The domain is pure: no runtime, no files, no clock, no randomness, no network.
const NOT_IN_DOMAIN: &[&str] = &[
    "tokio",
    "rand",
    "getrandom",
    "tempfile",
    "rustix",
    "libc",
    "reqwest",
    "tracing",
    "uuid",
    "chrono",
    "time",
];

/// Parsing of event streams is known in one crate only.
const EVENT_STREAM_LIBRARIES: &[&str] = &["reqwest-eventsource", "eventsource-stream"];

/// The only files with unsafe code, each with its reason in its header.
const WITH_UNSAFE: &[&str] = &[
    "src-tauri/crates/supervisor/src/darwin.rs",
    "src-tauri/crates/supervisor/src/keeper/linux/descriptors.rs",
    "src-tauri/crates/supervisor/src/win32.rs",
];

/// RS-38: the only files of a host and of the window's core that wait for a time, each with what the
/// time decides. None of them decides what a session does. Jobs are left out: they look again at a
/// receipt after a while, and end by a real exit.
const WITH_TIMERS: &[(&str, &str)] = &[
    (
        "controller/src/actor/recovery.rs",
        "the longest inspection (TR-32)",
    ),
    (
        "controller/src/actor/retry.rs",
        "the longest look before a retry",
    ),
    ("controller/src/host.rs", "the longest quit"),
    (
        "desktop/src/events.rs",
        "batches of streaming text, one for a screen's frame",
    ),
    (
        "desktop/src/hosts/attached.rs",
        "how long until the next try of a connection, for the countdown",
    ),
];

fn metadata() -> &'static Value {
    static METADATA: OnceLock<Value> = OnceLock::new();
    METADATA.get_or_init(|| {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .current_dir(root())
            .args(["metadata", "--format-version", "1", "--offline"])
            .args(["--filter-platform", &host()])
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "cargo metadata failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_slice(&output.stdout).unwrap()
    })
}

/// The platform of this build, since only its dependencies are sure to have been fetched.
fn host() -> String {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("-vV").output().unwrap();
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .unwrap()
        .to_owned()
}

struct Dependency {
    name: String,
    /// `normal`, `dev` or `build`.
    kind: String,
}

/// The workspace's own packages, by their name without the prefix, with all that they name.
fn members() -> BTreeMap<String, Vec<Dependency>> {
    let metadata = metadata();
    let ids: BTreeSet<&str> = strings(&metadata["workspace_members"]).collect();
    metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|package| ids.contains(package["id"].as_str().unwrap()))
        .map(|package| {
            let dependencies = package["dependencies"].as_array().unwrap().iter();
            let named = dependencies
                .map(|dependency| Dependency {
                    name: dependency["name"].as_str().unwrap().to_owned(),
                    kind: dependency["kind"].as_str().unwrap_or("normal").to_owned(),
                })
                .collect();
            let name = package["name"].as_str().unwrap();
            (own(name).unwrap_or(name).to_owned(), named)
        })
        .collect()
}

fn own(name: &str) -> Option<&str> {
    name.strip_prefix("holdfast-")
}

fn strings(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

/// All packages that a member's build needs on this platform, tests left out.
fn tree_of(member: &str) -> BTreeSet<String> {
    let nodes = metadata()["resolve"]["nodes"].as_array().unwrap();
    let by_id: BTreeMap<&str, &Value> = nodes
        .iter()
        .map(|node| (node["id"].as_str().unwrap(), node))
        .collect();
    let names: BTreeMap<&str, &str> = metadata()["packages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|package| {
            (
                package["id"].as_str().unwrap(),
                package["name"].as_str().unwrap(),
            )
        })
        .collect();
    let mut open: Vec<&str> = names
        .iter()
        .filter(|(_, name)| **name == member)
        .map(|(id, _)| *id)
        .collect();
    assert_eq!(open.len(), 1, "one package called {member}");
    let mut seen = BTreeSet::new();
    while let Some(id) = open.pop() {
        if !seen.insert(id) {
            continue;
        }
        for dependency in by_id[id]["deps"].as_array().unwrap() {
            let kinds = dependency["dep_kinds"].as_array().unwrap();
            if kinds.iter().any(|kind| kind["kind"] != "dev") {
                open.push(dependency["pkg"].as_str().unwrap());
            }
        }
    }
    seen.into_iter().map(|id| names[id].to_owned()).collect()
}

#[test]
fn arrows_between_crates_are_the_listed_ones() {
    let allowed: BTreeMap<&str, &[&str]> = ARROWS.iter().copied().collect();
    let mut findings = Vec::new();
    for (member, dependencies) in members() {
        if FOR_TESTS.contains(&member.as_str()) {
            continue;
        }
        let Some(arrows) = allowed.get(member.as_str()) else {
            findings.push(format!("the crate {member} has no line in the list"));
            continue;
        };
        for dependency in dependencies {
            let Some(target) = own(&dependency.name) else {
                continue;
            };
            let fine = arrows.contains(&target)
                // A crate's tests may look at their crate through the test tools.
                || (dependency.kind == "dev" && target == "testkit");
            if !fine {
                findings.push(format!("{member} → {target} ({})", dependency.kind));
            }
        }
    }
    assert_none("arrows that are not allowed", &findings);
}

#[test]
fn listed_arrows_form_no_cycle() {
    // Each line of the list names only crates of the lines before it.
    let mut before = BTreeSet::new();
    for (member, arrows) in ARROWS {
        for target in *arrows {
            assert!(before.contains(target), "{member} → {target} points back");
        }
        before.insert(*member);
    }
}

#[test]
fn every_listed_crate_is_in_the_workspace() {
    let members = members();
    let findings: Vec<String> = ARROWS
        .iter()
        .map(|(member, _)| (*member).to_owned())
        .filter(|member| !members.contains_key(member))
        .collect();
    assert_none("crates of the list that don't exist", &findings);
}

#[test]
fn the_domain_is_pure() {
    let tree = tree_of("holdfast-domain");
    let findings: Vec<String> = NOT_IN_DOMAIN
        .iter()
        .filter(|name| tree.contains(**name))
        .map(|name| (*name).to_owned())
        .collect();
    assert_none("libraries that the domain may not reach", &findings);
}

#[test]
fn one_crate_knows_the_event_stream_libraries() {
    let findings: Vec<String> = members()
        .iter()
        .filter(|(member, _)| member.as_str() != "sse")
        .flat_map(|(member, dependencies)| {
            dependencies
                .iter()
                .filter(|dependency| EVENT_STREAM_LIBRARIES.contains(&dependency.name.as_str()))
                .map(move |dependency| format!("{member} → {}", dependency.name))
        })
        .collect();
    assert_none("uses of event stream libraries outside sse", &findings);
}

#[test]
fn the_command_line_carries_no_window() {
    let tree = tree_of("holdfast-cli");
    assert!(tree.contains("tokio"), "the tree was read: {tree:?}");
    let findings: Vec<String> = tree
        .into_iter()
        .filter(|name| {
            name == "tauri"
                || name.starts_with("tauri-")
                || name == "wry"
                || name.starts_with("webkit2gtk")
        })
        .collect();
    assert_none("window libraries in the tree of cli", &findings);
}

#[test]
fn numbers_keep_one_representation() {
    // Canonical arguments are digested: with arbitrary precision one number has several spellings.
    let nodes = metadata()["resolve"]["nodes"].as_array().unwrap();
    let mut seen = 0;
    for node in nodes {
        let id = node["id"].as_str().unwrap();
        let features: Vec<&str> = strings(&node["features"]).collect();
        // An id is `registry+…#serde_json@1.0.0` or, older, `serde_json 1.0.0 (…)`.
        if id.contains("#serde_json@") || id.starts_with("serde_json ") {
            seen += 1;
            assert!(
                !features.contains(&"arbitrary_precision"),
                "serde_json has arbitrary_precision on: find who asks for it with \
                 `cargo tree -e features -i serde_json`"
            );
        }
    }
    assert!(seen > 0, "serde_json is in the tree");
}

#[test]
fn unsafe_code_is_only_where_it_is_listed() {
    let mut with_unsafe = BTreeSet::new();
    for source in sources(&["rs"]) {
        let found = source.text.lines().any(|line| {
            code_of(line)
                .split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '"'))
                .any(|word| word == concat!("un", "safe"))
        });
        if found {
            with_unsafe.insert(source.name);
        }
    }
    let listed: BTreeSet<String> = WITH_UNSAFE.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(
        with_unsafe, listed,
        "files with such code (left) and the list of them (right)"
    );
}

#[test]
fn rs_38_no_timer_decides_what_a_session_does() {
    let waits = [
        "time::sleep",
        "time::timeout",
        "time::interval",
        "time::Instant",
    ];
    let with_timers: BTreeSet<String> = sources(&["rs"])
        .iter()
        .filter_map(|source| {
            let name = source.name.strip_prefix("src-tauri/crates/")?;
            let is_owner = ["controller/src/", "desktop/src/", "domain/src/"]
                .iter()
                .any(|folder| name.starts_with(folder));
            let waits_for_time = source.text.lines().any(|line| {
                let code = code_of(line);
                code.contains("tokio::time") || waits.iter().any(|wait| code.contains(wait))
            });
            let is_of_jobs = name.starts_with("controller/src/actor/jobs");
            (is_owner && !is_of_jobs && waits_for_time).then(|| name.to_owned())
        })
        .collect();
    let listed: BTreeSet<String> = WITH_TIMERS
        .iter()
        .map(|(name, _)| (*name).to_owned())
        .collect();
    assert_eq!(
        with_timers, listed,
        "files that wait for a time (left) and the list of them, with their reasons (right)"
    );
}
