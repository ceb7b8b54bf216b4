//! A configuration that can't be used: the host does not start, and says where and what to do.

use std::process::{Command, Stdio};

use holdfast_testkit::model_server::Step;

use crate::agent::scene::{Plan, Scene, binary};

fn refused(config: &str, line: usize, hint: &str) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("config.toml"), config).unwrap();
    let output = Command::new(binary())
        .args(["serve", "--data"])
        .arg(folder.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{config}: {said}");
    assert!(output.stdout.is_empty(), "no ready line");
    assert!(said.contains("config.toml"), "{said}");
    assert!(said.contains(&format!("line {line}:")), "{line}: {said}");
    assert!(said.contains(hint), "{hint}: {said}");
    assert!(said.contains("nothing was changed"), "{said}");
    assert!(!folder.path().join("token").exists());
}

#[test]
fn an_unknown_field_ends_the_start() {
    refused("[agent]\nmood = \"good\"\n", 2, "mood");
    refused("default_modle = \"a/b\"\n", 1, "default_modle");
    refused(
        "[providers.x]\nbase_url = \"http://x\"\napi_key = \"k\"\n",
        3,
        "api_key",
    );
}

#[test]
fn a_bad_value_ends_the_start() {
    refused("[agent]\n\nmode = \"yolo\"\n", 3, "read-only");
    refused("[agent]\nshell_timeout_s = 0\n", 2, "1 to 86400");
    let long = "[agent]\nshell_timeout_s = \"long\"\n";
    refused(long, 2, "shell_timeout_s");
    refused(long, 2, "a whole number");
    refused("default_model = \"nothing\"\n", 1, "provider/model");
    refused("\n[providers.x]\nmodels = []\n", 2, "base_url");
    refused("[providers.x]\nkind = \"grpc\"\n", 1, "openai");
    refused("[providers.x]\nbase_url = \"ftp://x\"\n", 1, "http://");
    refused("[agent\n", 1, "config.toml");
}

#[test]
fn an_idle_timeout_has_its_bounds() {
    let provider = |seconds: &str| {
        format!("[providers.x]\nbase_url = \"http://x\"\nidle_timeout_s = {seconds}\n")
    };
    refused(&provider("0"), 3, "1 to 3600");
    refused(&provider("3601"), 3, "1 to 3600");
    refused(&provider("-1"), 3, "idle_timeout_s");
}

#[tokio::test]
async fn a_configured_model_and_mode_are_those_of_new_sessions() {
    let scene = Scene::of(Plan {
        mode: "read-only",
        provider: "idle_timeout_s = 3600".to_owned(),
        ..Plan::default()
    })
    .await;
    let status = scene.get("/status").await;
    assert_eq!(status["mode"], "read-only");
    assert_eq!(status["model"], "scripted/m");
    scene.model.push(Step::text("done"));
    scene.turn("go").await;
    assert_eq!(scene.model.requests()[0].json["model"], "m");
}
