//! Modes and grants (TR-04, TR-51): which calls run, which are asked, which are refused.

use holdfast_controller::policy::{Decision, decide, grant_for};
use holdfast_domain::transcript::session::{Grant, Session};
use holdfast_tools::{Prepared, Registry, RegistryConfig, Workspace};

fn calls() -> Vec<Prepared> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("f"), "x").unwrap();
    let workspace = Workspace::open(folder.path(), Vec::new()).unwrap();
    let registry = Registry::new(RegistryConfig::default()).unwrap();
    [
        ("read_file", r#"{"path":"f"}"#),
        ("fetch", r#"{"url":"http://127.0.0.1/"}"#),
        ("write_file", r#"{"path":"g","content":"x"}"#),
        #[cfg(target_os = "linux")]
        ("shell", r#"{"command":"true"}"#),
    ]
    .into_iter()
    .map(|(name, arguments)| registry.prepare(name, arguments, &workspace).unwrap())
    .collect()
}

fn in_mode(mode: &str) -> Session {
    let mut session = Session::default();
    mode.clone_into(&mut session.mode);
    session
}

fn word(decision: Decision) -> &'static str {
    match decision {
        Decision::Allow => "allow",
        Decision::Ask(_) => "ask",
        Decision::Refuse(code, _) => code,
    }
}

#[test]
fn tr_04_each_mode_decides_as_it_says() {
    let refused = "mode_read_only";
    for (mode, wanted) in [
        ("ask", ["allow", "allow", "ask", "ask"]),
        ("edits", ["allow", "allow", "allow", "ask"]),
        ("full", ["allow", "allow", "allow", "allow"]),
        ("read-only", ["allow", "allow", refused, refused]),
        // A word of a newer version is the careful mode.
        ("autopilot", ["allow", "allow", "ask", "ask"]),
    ] {
        let session = in_mode(mode);
        for (call, wanted) in calls().iter().zip(wanted) {
            let decided = word(decide(&session, call, false));
            assert_eq!(decided, wanted, "{mode}: {}", call.canonical_tool);
            // TR-51: behind a restart every effect is asked, in every mode that admits it.
            let continued = word(decide(&session, call, true));
            let careful = if wanted == "allow" && !call.read_only {
                "ask"
            } else {
                wanted
            };
            assert_eq!(continued, careful, "{mode}: {}", call.canonical_tool);
        }
    }
}

#[test]
fn a_grant_is_for_a_file_tool_or_for_one_exact_command() {
    let mut session = in_mode("ask");
    for call in calls().iter().filter(|call| !call.read_only) {
        let grant = grant_for(call);
        let whole = call.canonical_tool == "write_file";
        assert_eq!(grant.key == Grant::WHOLE_TOOL, whole);
        session.grants.insert(Grant {
            tool: call.canonical_tool.clone(),
            key: "another command".to_owned(),
        });
        assert_eq!(word(decide(&session, call, false)), "ask");
        session.grants.insert(grant);
        assert_eq!(word(decide(&session, call, false)), "allow");
        // A grant doesn't reach over a restart in the middle of a turn.
        assert_eq!(word(decide(&session, call, true)), "ask");
    }
}
