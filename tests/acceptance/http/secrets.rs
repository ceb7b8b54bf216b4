//! A key goes to its provider and nowhere else: not into logs, not into the session, not to
//! commands, not to standard error.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use holdfast_testkit::model_server::Step;

use crate::agent::scene::{Plan, Scene, shell};

const KEY: &str = "canary-6f1d-key";
const TOKEN: &str = "canary-77aa-token";
const PASSWORD: &str = "canary-90ce-password";
const PLAIN: &str = "plain-51b2-value";
const KEPT: &str = "kept-38ab-secret";

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

#[tokio::test]
async fn a_canary_is_found_nowhere() {
    let env = [
        ("CANARY_PROVIDER_KEY", KEY),
        ("SOME_SERVICE_TOKEN", TOKEN),
        ("DB_PASSWORD", PASSWORD),
        ("HOLDFAST_CANARY", TOKEN),
        ("PLAIN_VALUE", PLAIN),
        ("KEPT_SECRET", KEPT),
    ];
    let mut scene = Scene::of(Plan {
        provider: "api_key_env = \"CANARY_PROVIDER_KEY\"".to_owned(),
        agent: "env_keep = [\"KEPT_SECRET\", \"CANARY_PROVIDER_KEY\"]".to_owned(),
        env: env
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect::<BTreeMap<_, _>>(),
        ..Plan::default()
    })
    .await;
    scene.model.push(shell("s", "env; env > seen"));
    // A provider that repeats the key in its error, as some do.
    let body = format!("{{\"error\":{{\"message\":\"bad key {KEY} given\"}}}}");
    scene.model.push(Step::status(401, &body));
    let turn = scene.submit("go").await;
    let status = scene.ended(&turn).await;
    assert_eq!(status["lastError"]["code"], "provider_auth");
    let authorization = &scene.model.requests()[0].headers["authorization"];
    assert_eq!(authorization, &format!("Bearer {KEY}"), "it was used");

    let seen = scene.read("seen");
    assert!(seen.contains(PLAIN), "what is no secret is passed");
    assert!(seen.contains(KEPT), "what is listed is passed");
    assert!(seen.contains("GIT_TERMINAL_PROMPT=0"));
    let canaries = [KEY, TOKEN, PASSWORD];
    for canary in canaries {
        assert!(!seen.contains(canary), "{canary} reached a command");
        assert!(!status.to_string().contains(canary), "{status}");
        assert!(!scene.host.stderr().contains(canary));
    }
    let own_token = scene.host.token().to_owned();
    assert!(scene.host.term().unwrap().success());
    let files = files(&scene.data);
    assert!(files.iter().any(|file| file.ends_with("log.jsonl")));
    assert!(
        files
            .iter()
            .any(|file| file.parent().unwrap().ends_with("logs")),
        "{files:?}"
    );
    for file in files {
        let bytes = std::fs::read(&file).unwrap();
        let has = |word: &str| {
            bytes
                .windows(word.len())
                .any(|part| part == word.as_bytes())
        };
        for canary in canaries {
            assert!(!has(canary), "{canary} is in {}", file.display());
        }
        if !file.ends_with("token") {
            assert!(!has(&own_token), "the token is in {}", file.display());
        }
    }
}

#[tokio::test]
async fn logs_carry_no_prompt_and_no_path() {
    let mut scene = Scene::new("full").await;
    scene.write("private-name-4711.txt", "private-content-4712");
    scene.model.push(Step::call(
        "r",
        "read_file",
        r#"{"path":"private-name-4711.txt"}"#,
    ));
    scene
        .model
        .push(shell("s", "exit 3 # private-command-4713"));
    scene.model.push(Step::status(500, "private-error-4714"));
    scene.model.push(Step::text("private-answer-4715"));
    scene.turn("private-prompt-4716").await;
    assert!(scene.host.term().unwrap().success());
    let workspace = scene.workspace.to_string_lossy().into_owned();
    let mut logs: Vec<String> = files(&scene.data.join("logs"))
        .iter()
        .map(|file| std::fs::read_to_string(file).unwrap())
        .collect();
    assert!(!logs.is_empty());
    logs.push(scene.host.stderr());
    for log in logs {
        for word in ["private-", workspace.as_str()] {
            assert!(!log.contains(word), "{word} is in {log}");
        }
    }
}

#[cfg(unix)]
#[tokio::test]
async fn what_is_kept_is_the_users_alone() {
    use std::os::unix::fs::PermissionsExt;
    let scene = Scene::new("full").await;
    scene.model.push(shell("s", "echo x"));
    scene.model.push(Step::text("done"));
    scene.turn("go").await;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&scene.data.join("token")), 0o600);
    assert_eq!(mode(&scene.session_folder()), 0o700);
    for file in files(&scene.session_folder()) {
        assert_eq!(mode(&file) & 0o077, 0, "{}", file.display());
    }
}

#[tokio::test]
async fn rs_37_logs_tell_states_by_a_part_of_their_epoch() {
    let mut scene = Scene::new("full").await;
    scene.model.push(Step::text("done"));
    scene.turn("private-prompt-4801").await;
    let state = scene.get("/status").await["runtimeState"].clone();
    let epoch = state["runtimeEpoch"].as_str().unwrap().to_owned();
    assert!(scene.host.term().unwrap().success());
    let logs: String = files(&scene.data.join("logs"))
        .iter()
        .map(|file| std::fs::read_to_string(file).unwrap())
        .collect();
    let told: Vec<&str> = logs
        .lines()
        .filter(|line| line.contains("source=\"commit\"") && line.contains(&epoch[..8]))
        .collect();
    let last = format!("revision={} ", state["revision"]);
    assert!(told.iter().any(|line| line.contains(&last)), "{told:#?}");
    for phase in ["Executing", "Finishing", "Idle"] {
        let word = format!("phase={phase}");
        assert!(told.iter().any(|line| line.contains(&word)), "{phase}");
    }
    assert!(!logs.contains(&epoch), "the whole epoch");
    assert!(!logs.contains("private-prompt-4801"));
}
