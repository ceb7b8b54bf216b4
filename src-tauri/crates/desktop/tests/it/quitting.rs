//! SV-09: what runs when the window closes, kept and stopped, with real commands.

use std::path::Path;

use holdfast_api::App;
use holdfast_api::app::TabSubmit;
use holdfast_api::desktop::{Parting, RuntimeStateProjection, TabView};
use holdfast_api::transcript::ToolView;
use holdfast_testkit::Step;
use holdfast_testkit::wait::{SOON, until};

use crate::stage::{Stage, Stand, tab_of};

/// A tab whose session runs a command until the file `stay` is gone.
async fn at_work(stage: &Stage, stand: &Stand) -> TabView {
    let stay = stage.path("stay");
    std::fs::write(&stay, "").unwrap();
    let command = format!(
        "echo $$ > {up}.new; mv {up}.new {up}; while test -e {stay}; do sleep 0.02; done; echo mine",
        up = quoted(&stage.path("up")),
        stay = quoted(&stay),
    );
    let call = serde_json::json!({ "command": command }).to_string();
    stage.left.push(Step::call("c1", "shell", &call));
    stage.left.push(Step::text("done"));
    let tab = stand.tab(&stage.path("left"), "left/one", "full").await;
    let message = TabSubmit {
        tab_id: tab.tab_id.clone(),
        input: "run".to_owned(),
        submission_id: "key".to_owned(),
    };
    stand.app.submit(message).await.unwrap();
    let up = stage.path("up");
    until("the command", SOON, || up.exists().then_some(())).await;
    tab
}

fn quoted(path: &Path) -> String {
    format!("'{}'", path.display())
}

/// The command's shell runs.
fn runs(stage: &Stage) -> bool {
    let pid = std::fs::read_to_string(stage.path("up")).unwrap();
    let mut look = std::process::Command::new("kill");
    look.args(["-0", pid.trim()])
        .stderr(std::process::Stdio::null());
    look.status().unwrap().success()
}

async fn tool(stand: &Stand, tab: &TabView) -> Option<ToolView> {
    let snapshot = stand.app.transcript_snapshot(tab_of(tab)).await.unwrap();
    snapshot.items.into_iter().find_map(|item| item.tool)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sv_09_nothing_runs_and_nothing_is_asked() {
    let stage = Stage::new();
    let stand = stage.start();
    stand.tab(&stage.path("left"), "left/one", "full").await;
    let question = stand.app.quit_question().await;
    assert_eq!(question.commands, []);
    assert_eq!(question.default, Parting::Keep);
    let config = std::fs::read_to_string(stage.config()).unwrap();
    let stops = format!("{config}\n[agent]\non_host_loss = \"stop\"\n");
    std::fs::write(stage.config(), stops).unwrap();
    assert_eq!(stand.app.parting().await, Parting::Stop);
    stand.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sv_09_a_kept_command_goes_on_and_its_result_is_found() {
    let stage = Stage::new();
    let stand = stage.start();
    let tab = at_work(&stage, &stand).await;
    let question = stand.app.quit_question().await;
    let [command] = question.commands.as_slice() else {
        panic!("{question:?}");
    };
    assert!(command.command.ends_with("echo mine"), "{command:?}");
    assert_eq!(command.session_id, tab.session_id);
    assert!(command.started_at.is_some());
    drop(stand.app);
    stand.host.release().await;
    assert!(runs(&stage));

    let stand = stage.start();
    let mut events = stand.app.events();
    let jobs = |count| {
        move |projection: &RuntimeStateProjection| {
            let mut rows = projection.sessions.iter();
            rows.any(|row| row.open && row.state.background_jobs() == Some(count))
        }
    };
    stand.reach(&mut events, "the command", jobs(1)).await;
    let runs = stand.app.quit_question().await.commands;
    assert_eq!(runs.len(), 1, "asked about again, once: {runs:?}");
    std::fs::remove_file(stage.path("stay")).unwrap();
    stand.reach(&mut events, "the end", jobs(0)).await;
    let tool = tool(&stand, &tab).await.unwrap();
    assert_eq!(tool.state, "completed", "{tool:?}");
    assert_eq!(tool.result_source.as_deref(), Some("recovered"));
    assert!(tool.output.contains("mine"), "{tool:?}");
    stand.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sv_09_a_stopped_command_has_its_real_outcome_before_the_app_leaves() {
    let stage = Stage::new();
    let stand = stage.start();
    let tab = at_work(&stage, &stand).await;
    assert!(runs(&stage));
    stand.quit().await;
    assert!(!runs(&stage));

    let stand = stage.start();
    let tool = tool(&stand, &tab).await.unwrap();
    assert_eq!(tool.state, "interrupted", "{tool:?}");
    assert_eq!(tool.result_source.as_deref(), Some("live"));
    assert!(stand.app.quit_question().await.commands.is_empty());
    stand.quit().await;
}
