//! What the window may do: every command is named in the build script and granted one by one, to
//! the window `main` and to no other; nothing remote is allowed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::{Recording, Shell, invoke, refusal, request};

/// What is granted besides the commands.
const OTHER_GRANTS: [&str; 3] = [
    "core:event:allow-listen",
    "core:event:allow-unlisten",
    "opener:allow-open-url",
];

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn json_of(path: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(here(path)).unwrap()).unwrap()
}

/// The table of operations, and the window's own commands.
fn table() -> BTreeSet<String> {
    let mut names: BTreeSet<String> = holdfast_api::app::APP
        .iter()
        .map(|name| (*name).to_owned())
        .collect();
    names.extend(["pick_folder", "quit"].map(str::to_owned));
    names
}

#[test]
fn commands_of_the_build_script_are_those_of_the_table() {
    let script = std::fs::read_to_string(here("build.rs")).unwrap();
    let (_, list) = script.split_once("const COMMANDS").unwrap();
    let (list, _) = list.split_once("];").unwrap();
    let named: Vec<String> = list
        .split('"')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect();
    assert_eq!(named.len(), table().len(), "a command is named twice");
    assert_eq!(named.into_iter().collect::<BTreeSet<_>>(), table());
}

#[test]
fn grants_are_the_commands_of_the_table_one_by_one_for_the_window_main() {
    let files: Vec<_> = std::fs::read_dir(here("capabilities"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(files, ["main.json"]);
    let capability = json_of("capabilities/main.json");
    assert_eq!(capability["windows"], json!(["main"]));
    for absent in ["webviews", "remote", "platforms"] {
        assert_eq!(capability[absent], Value::Null, "{absent}");
    }
    let granted: BTreeSet<String> = capability["permissions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|permission| permission["identifier"].as_str().or(permission.as_str()))
        .map(|identifier| identifier.unwrap().to_owned())
        .collect();
    let expected = table()
        .iter()
        .map(|name| format!("allow-{}", name.replace('_', "-")))
        .chain(OTHER_GRANTS.map(str::to_owned))
        .collect();
    assert_eq!(granted, expected);
}

#[test]
fn the_configuration_allows_no_script_address_or_window_but_its_own() {
    let config = json_of("tauri.conf.json");
    assert_eq!(
        config["app"]["security"]["csp"],
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self' ipc: \
         http://ipc.localhost; img-src 'self' data: blob:"
    );
    assert_eq!(config["app"]["security"]["capabilities"], json!(["main"]));
    assert_eq!(config["app"]["security"]["assetProtocol"], Value::Null);
    assert_eq!(
        config["app"]["security"]["dangerousDisableAssetCspModification"],
        Value::Null
    );
    assert_eq!(config["app"]["withGlobalTauri"], false);
    let windows = config["app"]["windows"].as_array().unwrap();
    assert_eq!(windows.len(), 1);
    assert_eq!(windows[0]["label"], "main");
    assert_eq!(windows[0]["url"], Value::Null);
    assert_eq!(config["build"]["frontendDist"], "../ui/dist");
}

#[test]
fn another_window_may_call_nothing() {
    let app = Recording::answering(&[]);
    let shell = Shell::over(app.clone());
    let other = shell.window("other");
    for operation in holdfast_api::app::APP {
        let answer = invoke(&other, operation, json!({ "request": request(operation) }));
        let message = answer.unwrap_err().to_string();
        assert!(message.contains("not allowed"), "{operation}: {message}");
    }
    assert_eq!(app.calls(), Vec::<(String, Value)>::new());
    let own = shell.window("main");
    let answer = invoke(&own, "get_layout", json!({ "request": {} }));
    assert_eq!(answer, Err(refusal()));
}

#[test]
fn a_command_that_is_not_in_the_table_does_not_exist() {
    let shell = Shell::over(Recording::answering(&[]));
    let window = shell.window("main");
    let message = invoke(&window, "open_every_door", json!({ "request": {} })).unwrap_err();
    assert!(message.is_string(), "{message}");
}
