//! `holdfast web`: who gets in, what is served, and what is back after a kill.

use holdfast_testkit::wait::SOON;
use holdfast_testkit::{ModelServer, Step, TestClient};
use serde_json::{Value, json};

use crate::program::{Place, Program};

#[tokio::test]
async fn the_link_lets_one_browser_in_once() {
    let place = Place::new();
    let program = place.start();
    let anonymous = program.anonymous();
    let (status, body) = anonymous.post("/app/get_layout", &json!({})).await;
    assert_eq!(
        (status, body["code"].as_str()),
        (401, Some("token_missing"))
    );
    let (status, body) = anonymous
        .post("/app-login", &json!({"code": "0".repeat(32)}))
        .await;
    assert_eq!((status, body["code"].as_str()), (401, Some("code_refused")));

    let browser = program.browser().await;
    browser.post_ok("/app/get_layout", &json!({})).await;
    let again = json!({ "code": program.code() });
    let (status, body) = anonymous.post("/app-login", &again).await;
    assert_eq!((status, body["code"].as_str()), (401, Some("code_refused")));
    // A browser's bearer opens the app and nothing else; the token of the file opens both.
    let (status, _) = browser.get("/status").await;
    assert_eq!(status, 401);
    let owner = browser.with_token(Some(&program.token()));
    owner.get_ok("/status").await;
    owner.post_ok("/app/get_layout", &json!({})).await;
    // It is in memory alone.
    drop(program);
    let program = place.start();
    let stale = TestClient::new(program.url(), token_of(&browser, &program).as_deref());
    let (status, _) = stale.post("/app/get_layout", &json!({})).await;
    assert_eq!(status, 401);
}

/// The bearer of a client that was let in by an earlier program.
fn token_of(browser: &TestClient, program: &Program) -> Option<String> {
    let request = browser
        .request("GET".parse().unwrap(), "/")
        .build()
        .unwrap();
    let header = request.headers()["authorization"].to_str().unwrap();
    assert!(!header.contains(&program.token()));
    header.strip_prefix("Bearer ").map(str::to_owned)
}

#[tokio::test]
async fn guessing_codes_is_limited() {
    let place = Place::new();
    let program = place.start();
    let anonymous = program.anonymous();
    for _ in 0..10 {
        let (status, _) = anonymous
            .post("/app-login", &json!({"code": "guess"}))
            .await;
        assert_eq!(status, 401);
    }
    let login = json!({ "code": program.code() });
    let (status, body) = anonymous.post("/app-login", &login).await;
    assert_eq!(
        (status, body["code"].as_str()),
        (429, Some("too_many_attempts"))
    );
}

#[tokio::test]
async fn pages_are_served_without_a_token_and_only_from_their_folder() {
    let place = Place::new();
    std::fs::write(place.path("secret.txt"), "secret").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(place.path("secret.txt"), place.path("ui/link.txt")).unwrap();
    let program = place.start();
    let anonymous = program.anonymous();
    let get = |path: &str| anonymous.request("GET".parse().unwrap(), path).send();
    let index = get("/").await.unwrap();
    assert_eq!(index.status(), 200);
    let header = |name: &str| index.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("content-type"), "text/html; charset=utf-8");
    assert_eq!(header("cache-control"), "no-store");
    assert_eq!(header("x-content-type-options"), "nosniff");
    assert!(header("content-security-policy").starts_with("default-src 'none'; script-src 'self'"));
    let script = get("/assets/app-1.js").await.unwrap();
    assert_eq!(
        script.headers()["content-type"],
        "text/javascript; charset=utf-8"
    );
    assert_eq!(
        script.headers()["cache-control"],
        "public, max-age=31536000, immutable"
    );
    for path in [
        "/none.js",
        "/link.txt",
        "/%2e%2e/secret.txt",
        "/..%2fsecret.txt",
        "/assets",
        "/assets/../../secret.txt",
    ] {
        let missing = get(path).await.unwrap();
        assert_eq!(missing.status(), 404, "{path}");
    }
    // Operations of the host are no files.
    let (status, _) = anonymous.get("/status").await;
    assert_eq!(status, 401);
    let (status, _) = anonymous.post("/none", &json!({})).await;
    assert_eq!(status, 404);
    // Host and Origin are looked at first, for pages too.
    for (name, value, code) in [
        ("host", "evil.example", "host_refused"),
        ("origin", "http://evil.example", "origin_refused"),
    ] {
        for path in ["/", "/app-login", "/app/get_layout"] {
            let request = anonymous.request("POST".parse().unwrap(), path);
            let request = request.header(name, value).json(&json!({}));
            let (status, body) = TestClient::send(request).await.unwrap();
            assert_eq!((status, body["code"].as_str()), (403, Some(code)), "{path}");
        }
    }
}

#[test]
fn without_its_user_interface_it_says_so_and_starts_nothing() {
    let place = Place::new();
    let output = place.command(&place.path("none")).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("ui_missing") && said.contains("HOLDFAST_UI"),
        "{said}"
    );
    assert!(output.stdout.is_empty());
    assert!(!place.path("data/token").exists());
}

async fn app(browser: &TestClient, operation: &str, request: Value) -> Value {
    browser
        .post_ok(&format!("/app/{operation}"), &request)
        .await
}

#[tokio::test]
async fn tabs_drafts_and_an_open_question_are_back_after_a_kill() {
    let model = ModelServer::start(Step::call(
        "c1",
        "write_file",
        r#"{"path":"note.txt","content":"hello\n"}"#,
    ));
    let place = Place::new();
    let config = format!(
        "default_model = \"left/one\"\n[providers.left]\nbase_url = {:?}\nmodels = [\"one\"]\n",
        model.url()
    );
    std::fs::write(place.path("data/config.toml"), config).unwrap();
    let mut program = place.start();
    let browser = program.browser().await;
    let project = json!({ "workspaceRoot": place.path("project") });
    let tab = app(&browser, "new_session", project.clone()).await;
    let other = app(&browser, "new_session", project).await;
    let events = browser.events("/app/events", None).await;
    let submit = json!({"tabId": tab["tabId"], "input": "write it", "submissionId": "k1"});
    app(&browser, "submit", submit).await;
    let asked = |frame: &holdfast_testkit::Frame| {
        frame.data["event"] == "runtime-state:changed"
            && frame.data["payload"]["topics"]
                .as_array()
                .unwrap()
                .iter()
                .any(|topic| {
                    topic["topicId"] == tab["sessionId"]
                        && topic["status"] == "waiting_confirmation"
                })
    };
    events.wait_for_frame("the question", SOON, asked).await;
    let draft = json!({"tabId": other["tabId"], "text": "half a thought"});
    app(&browser, "save_draft", draft).await;
    let before = app(&browser, "get_layout", json!({})).await;
    program.kill9();

    let program = place.start();
    let browser = program.browser().await;
    let events = browser.events("/app/events", None).await;
    let after = app(&browser, "get_layout", json!({})).await;
    assert_eq!(without_titles(after.clone()), without_titles(before));
    assert_eq!(after["tabs"][1]["draft"], "half a thought");
    let projection = app(&browser, "sync_runtime_state", json!({})).await;
    let now = holdfast_testkit::Frame {
        id: String::new(),
        event: String::new(),
        data: json!({"event": "runtime-state:changed", "payload": projection}),
    };
    if !asked(&now) {
        events.wait_for_frame("the question", SOON, asked).await;
    }
    let prompts = app(&browser, "pending_prompts", json!({"tabId": tab["tabId"]})).await;
    let answer = json!({
        "tabId": tab["tabId"],
        "id": prompts[0]["promptId"],
        "generation": prompts[0]["approval"]["generation"],
        "allow": true,
        "scope": "once",
        "reason": "",
    });
    app(&browser, "approve", answer).await;
    events
        .wait_for_frame("the turn's end", SOON, |frame| {
            frame.data["event"] == "session:frames"
                && frame.data["payload"]["frames"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .any(|frame| frame["frame"]["kind"] == "turn_done")
        })
        .await;
    let written = std::fs::read_to_string(place.path("project/note.txt")).unwrap();
    assert_eq!(written, "hello\n");
}

/// A title comes with the first message, whenever the session is asked for it.
fn without_titles(mut layout: Value) -> Value {
    for tab in layout["tabs"].as_array_mut().unwrap() {
        tab["title"].take();
    }
    layout
}
