//! `shell` on every system, in words that every shell knows.

use std::sync::{Arc, Mutex};

use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_domain::recovery::process::EndedBy;
use holdfast_tools::{Context, Prepared, Progress};
use serde_json::{Value, json};

use crate::place::{Place, supervisor, wait_for};

/// Runs for ten minutes.
const LONG: &str = if cfg!(windows) {
    "cmd /c \"echo begun& ping -n 600 127.0.0.1\""
} else {
    "echo begun; sleep 600"
};

/// What is known of a tree that was ended: macOS can't prove that it has.
const STOPPED: AttemptState = if cfg!(target_os = "macos") {
    AttemptState::Unknown
} else {
    AttemptState::Interrupted
};

fn prepare(place: &Place, arguments: Value) -> (Prepared, Context) {
    let prepared = place.prepare("shell", &arguments).unwrap();
    let mut context = place.context(&prepared);
    context.supervisor_binary = supervisor();
    (prepared, context)
}

#[tokio::test]
async fn sv_02_output_and_exit_status_come_back_everywhere() {
    let place = Place::new();
    let (prepared, context) = prepare(&place, json!({"command": "echo \"two words\""}));
    let outcome = place.execute(&prepared, &context).await;
    assert_eq!(outcome.state, AttemptState::Completed, "{}", outcome.text);
    assert!(outcome.text.contains("two words"), "{}", outcome.text);
    assert!(
        outcome.text.ends_with("[exit status 0]\n"),
        "{}",
        outcome.text
    );

    let (prepared, context) = prepare(&place, json!({"command": "exit 3"}));
    let outcome = place.execute(&prepared, &context).await;
    assert_eq!(outcome.state, AttemptState::Failed, "{}", outcome.text);
    assert_eq!(outcome.text, "[exit status 3]\n");
    assert_eq!(outcome.exit.unwrap().ended_by, EndedBy::Itself);
}

#[tokio::test]
async fn a_command_runs_in_the_workspace_folder_everywhere() {
    let place = Place::new();
    let (prepared, context) = prepare(&place, json!({"command": "echo x > made"}));
    let outcome = place.execute(&prepared, &context).await;
    assert_eq!(outcome.state, AttemptState::Completed, "{}", outcome.text);
    assert!(place.path("made").exists());
}

#[tokio::test]
async fn tr_11_stop_ends_a_command_with_what_is_proven_of_it() {
    let place = Place::new();
    let (prepared, mut context) = prepare(&place, json!({"command": LONG}));
    let printed = Arc::new(Mutex::new(String::new()));
    context.progress = Progress::to({
        let printed = Arc::clone(&printed);
        move |text| printed.lock().unwrap().push_str(text)
    });
    let cancel = context.cancel.clone();
    let watch = tokio::task::spawn_blocking(move || {
        wait_for("the command prints", || !printed.lock().unwrap().is_empty());
        cancel.cancel();
    });
    let (outcome, watched) = tokio::join!(place.execute(&prepared, &context), watch);
    watched.unwrap();
    assert_eq!(outcome.state, STOPPED, "{}", outcome.text);
    assert_eq!(outcome.exit.unwrap().ended_by, EndedBy::Stop);
}

#[tokio::test]
async fn sv_02_a_commands_time_limit_ends_it_everywhere() {
    let place = Place::new();
    let (prepared, context) = prepare(&place, json!({"command": LONG, "timeout_s": 1}));
    let outcome = place.execute(&prepared, &context).await;
    assert_eq!(outcome.state, STOPPED, "{}", outcome.text);
    assert_eq!(outcome.exit.unwrap().ended_by, EndedBy::Timeout);
}
