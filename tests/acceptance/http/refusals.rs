//! Requests that are refused: each with its status and code, and nothing done.

use holdfast_testkit::TestClient;
use holdfast_testkit::model_server::Step;
use reqwest::Method;
use serde_json::{Value, json};

use crate::agent::scene::Scene;

async fn send(request: reqwest::RequestBuilder) -> (u16, String) {
    let (status, body) = TestClient::send(request).await.unwrap();
    (status, body["code"].as_str().unwrap_or_default().to_owned())
}

fn refused(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

#[tokio::test]
async fn another_host_name_is_refused_first() {
    let scene = Scene::new("full").await;
    let port = scene.host.url().rsplit(':').next().unwrap().to_owned();
    let ask = |host: &str| {
        let request = scene.client.request(Method::GET, "/status");
        send(request.header("host", host))
    };
    for host in [
        "evil.example".to_owned(),
        format!("evil.example:{port}"),
        "127.0.0.1.evil.example".to_owned(),
        "127.0.0.1:1".to_owned(),
        format!("localhost.:{port}x"),
        "0.0.0.0".to_owned(),
    ] {
        assert_eq!(ask(&host).await, refused(403, "host_refused"), "{host}");
    }
    for host in [format!("127.0.0.1:{port}"), format!("localhost:{port}")] {
        assert_eq!(ask(&host).await.0, 200, "{host}");
    }
    // Even without a token the name comes first, and health is no way around it.
    let bare = scene.client.with_token(None);
    let request = bare.request(Method::GET, "/healthz");
    let answer = send(request.header("host", "evil.example")).await;
    assert_eq!(answer, refused(403, "host_refused"));
}

#[tokio::test]
async fn another_origin_is_refused() {
    let scene = Scene::new("full").await;
    let own = scene.host.url().trim_end_matches('/').to_owned();
    let port = own.rsplit(':').next().unwrap().to_owned();
    let ask = |origin: &str| {
        let request = scene.client.request(Method::GET, "/status");
        send(request.header("origin", origin))
    };
    for origin in [
        "https://evil.example".to_owned(),
        "null".to_owned(),
        "http://127.0.0.1".to_owned(),
        "http://127.0.0.1:1".to_owned(),
        format!("http://evil.example:{port}"),
        format!("file://127.0.0.1:{port}"),
    ] {
        assert_eq!(
            ask(&origin).await,
            refused(403, "origin_refused"),
            "{origin}"
        );
    }
    assert_eq!(ask(&own).await.0, 200);
}

#[tokio::test]
async fn a_body_must_be_json_of_the_right_type_and_size() {
    let scene = Scene::new("full").await;
    let submit = scene.path("/submit");
    let post = |body: &str, kind: &str| {
        let request = scene.client.request(Method::POST, &submit);
        send(request.header("content-type", kind).body(body.to_owned()))
    };
    let json_type = "application/json";
    let not_json = refused(400, "body_not_json");
    let invalid = refused(400, "body_invalid");
    let wrong_type = refused(415, "content_type_wrong");
    assert_eq!(post(r#"{"input":"#, json_type).await, not_json);
    assert_eq!(post("", json_type).await, not_json);
    assert_eq!(post("{\"input\":\"a\"} more", json_type).await, not_json);
    assert_eq!(post("{\"input\":\"\u{7}\"}", json_type).await, not_json);
    assert_eq!(post("[]", json_type).await, invalid);
    assert_eq!(post("{}", json_type).await, invalid);
    assert_eq!(post(r#"{"input":1}"#, json_type).await, invalid);
    assert_eq!(post(r#"{"input":"a","more":1}"#, json_type).await, invalid);
    assert_eq!(
        post(r#"{"input":"a","input":"b"}"#, json_type).await,
        invalid
    );
    assert_eq!(post(r#"{"input":"a"}"#, "text/plain").await, wrong_type);
    let form = "application/x-www-form-urlencoded";
    assert_eq!(post(r#"{"input":"a"}"#, form).await, wrong_type);
    let bare = scene.client.request(Method::POST, &submit);
    assert_eq!(send(bare.body("{\"input\":\"a\"}")).await, wrong_type);
    assert_eq!(
        post(r#"{"input":" \n"}"#, json_type).await,
        refused(400, "input_empty")
    );
    assert_eq!(
        scene.items().await,
        Vec::<Value>::new(),
        "nothing was stored"
    );
    assert_eq!(scene.model.request_count(), 0);
}

#[tokio::test]
async fn a_large_message_is_taken_and_a_larger_one_is_not() {
    const MIB: usize = 1024 * 1024;
    let scene = Scene::new("full").await;
    for (size, expected) in [
        (4 * MIB + 1, refused(413, "input_too_large")),
        (4 * MIB + 70 * 1024, refused(413, "body_too_large")),
        (9 * MIB, refused(413, "body_too_large")),
    ] {
        let (status, body) = scene
            .post("/submit", json!({ "input": "x".repeat(size) }))
            .await;
        let answer = (status, body["code"].as_str().unwrap().to_owned());
        assert_eq!(answer, expected, "{size}");
    }
    assert_eq!(scene.items().await, Vec::<Value>::new());
    let largest = "x".repeat(4 * MIB);
    scene.model.push(Step::text("much"));
    scene.turn(&largest).await;
    let items = scene.items().await;
    assert_eq!(items[0]["text"].as_str().map(str::len), Some(largest.len()));
}

#[tokio::test]
async fn each_body_limit_is_its_operations_own() {
    let scene = Scene::new("full").await;
    let padding = "x".repeat(70 * 1024);
    for path in [
        "/sessions",
        "/resume",
        "/cancel",
        "/approve",
        "/jobs/cancel",
    ] {
        let (status, body) = scene.client.post(path, &json!({ "more": padding })).await;
        let answer = (status, body["code"].as_str());
        assert_eq!(answer, (413, Some("body_too_large")), "{path}");
    }
}

#[tokio::test]
async fn unknown_fields_are_refused_in_bodies_and_queries() {
    let scene = Scene::new("full").await;
    let id = &scene.session;
    let bodies = [
        (
            "/sessions",
            json!({ "workspace": scene.workspace, "more": 1 }),
        ),
        ("/resume", json!({ "sessionId": id, "more": 1 })),
        ("/submit", json!({ "input": "a", "more": 1 })),
        ("/cancel", json!({ "turnId": "a", "more": 1 })),
        ("/jobs/cancel", json!({ "id": "a", "more": 1 })),
        (
            "/approve",
            json!({ "id": "a", "generation": 1, "allow": true, "more": 1 }),
        ),
    ];
    for (path, body) in bodies {
        let (status, answer) = scene.client.post(path, &body).await;
        let answer = (status, answer["code"].as_str());
        assert_eq!(answer, (400, Some("body_invalid")), "{path}");
    }
    let patch = scene
        .client
        .request(Method::PATCH, &format!("/sessions/{id}"));
    assert_eq!(
        send(patch.json(&json!({ "more": 1 }))).await,
        refused(400, "body_invalid")
    );
    for path in [
        "/status?more=1",
        "/tool-recovery?more=1",
        "/events?more=1",
        "/sessions?more=1",
        "/pending-prompts?more=1",
        "/transcript/page?more=1",
        "/transcript/snapshot?more=1",
        "/diff?attempt=a&more=1",
        "/output?attempt=a&more=1",
        "/jobs?more=1",
        "/diff",
        "/output?attempt=a&offset=-1",
        "/transcript/page?limit=many",
        "/sessions?limit=-1",
    ] {
        let (status, answer) = scene.client.get(path).await;
        let answer = (status, answer["code"].as_str());
        assert_eq!(answer, (400, Some("query_invalid")), "{path}");
    }
}

#[tokio::test]
async fn limits_out_of_range_are_refused() {
    let scene = Scene::new("full").await;
    for path in [
        "/sessions?limit=0",
        "/sessions?limit=201",
        "/transcript/page?limit=0",
        "/transcript/page?limit=501",
    ] {
        let (status, answer) = scene.client.get(path).await;
        let answer = (status, answer["code"].as_str());
        assert_eq!(answer, (400, Some("limit_invalid")), "{path}");
    }
    for path in ["/sessions?limit=200", "/transcript/page?limit=500"] {
        assert_eq!(scene.client.get(path).await.0, 200, "{path}");
    }
    let (status, answer) = scene.client.get("/sessions?cursor=nonsense").await;
    assert_eq!(
        (status, answer["code"].as_str()),
        (400, Some("cursor_invalid"))
    );
}

#[tokio::test]
async fn a_workspace_must_be_a_folder_that_is_not_the_programs_own() {
    let scene = Scene::new("full").await;
    scene.write("file", "");
    std::fs::create_dir(scene.data.join("inside")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(&scene.data, scene.file("link")).unwrap();
    let text = |path: std::path::PathBuf| path.to_string_lossy().into_owned();
    for workspace in [
        text(scene.file("missing")),
        text(scene.file("file")),
        text(scene.data.clone()),
        text(scene.data.join("inside")),
        text(scene.file("link/inside")),
        "relative".to_owned(),
        String::new(),
        "/nul\0l".to_owned(),
    ] {
        let body = json!({ "workspace": workspace });
        let (status, answer) = scene.client.post("/sessions", &body).await;
        let code = answer["code"].as_str();
        assert_eq!(
            (status, code),
            (400, Some("workspace_invalid")),
            "{workspace:?}"
        );
    }
    for (body, code) in [
        (json!({ "mode": "yolo" }), "mode_unknown"),
        (json!({ "model": "nothing" }), "model_unknown"),
    ] {
        let (status, answer) = scene.client.post("/sessions", &body).await;
        assert_eq!(
            (status, answer["code"].as_str()),
            (400, Some(code)),
            "{body}"
        );
    }
    let list = scene.client.get_ok("/sessions").await;
    assert_eq!(
        list["items"].as_array().unwrap().len(),
        1,
        "no session was created"
    );
    assert_eq!(
        scene.get("/status").await["sessionId"],
        scene.session.as_str()
    );
}

#[tokio::test]
async fn an_unknown_session_is_404_everywhere() {
    let scene = Scene::new("full").await;
    for id in [
        "0".repeat(32),
        "nonsense".to_owned(),
        "..".to_owned(),
        "%2e%2e%2f".to_owned(),
    ] {
        for path in [
            "/status",
            "/tool-recovery",
            "/pending-prompts",
            "/transcript/page",
            "/transcript/snapshot",
            "/jobs",
        ] {
            let (status, answer) = scene.client.get(&format!("{path}?session={id}")).await;
            let code = answer["code"].as_str();
            assert_eq!(
                (status, code),
                (404, Some("session_not_found")),
                "{path} {id}"
            );
        }
        for (path, body) in [
            ("/submit", json!({ "input": "a" })),
            ("/cancel", json!({})),
            ("/jobs/cancel", json!({ "id": "a" })),
        ] {
            let path = format!("{path}?session={id}");
            let (status, answer) = scene.client.post(&path, &body).await;
            let code = answer["code"].as_str();
            assert_eq!((status, code), (404, Some("session_not_found")), "{path}");
        }
    }
    let resume = json!({ "sessionId": "0".repeat(32) });
    let (status, answer) = scene.client.post("/resume", &resume).await;
    assert_eq!(
        (status, answer["code"].as_str()),
        (404, Some("session_not_found"))
    );
    for method in [Method::PATCH, Method::DELETE] {
        let path = format!("/sessions/{}", "0".repeat(32));
        let request = scene.client.request(method, &path).json(&json!({}));
        assert_eq!(send(request).await, refused(404, "session_not_found"));
    }
    let (status, answer) = scene.client.get(&scene.path("/diff?attempt=none")).await;
    assert_eq!(
        (status, answer["code"].as_str()),
        (404, Some("attempt_unknown"))
    );
}

#[tokio::test]
async fn a_fresh_host_has_no_current_session() {
    let mut scene = Scene::new("full").await;
    scene.host.restart().unwrap();
    let client = scene.host.client();
    let status = client.get_ok("/status").await;
    assert_eq!(status["sessionId"], "");
    assert_eq!(status["running"], false);
    assert_eq!(status.get("runtimeState"), None);
    let (code, answer) = client.post("/submit", &json!({ "input": "a" })).await;
    assert_eq!((code, answer["code"].as_str()), (409, Some("no_session")));
    let (code, answer) = client.get("/pending-prompts").await;
    assert_eq!((code, answer["code"].as_str()), (409, Some("no_session")));
}

#[tokio::test]
async fn tr_41_an_expected_session_must_be_the_one_that_answers() {
    let scene = Scene::new("full").await;
    let other = "f".repeat(32);
    let path_of = |id: &str| format!("session-id:{id}");
    let ask = |id: Option<&str>, path: Option<String>| {
        let mut request = scene.client.request(Method::GET, "/status");
        if let Some(id) = id {
            request = request.header("x-reasonix-expected-session-id", id);
        }
        if let Some(path) = path {
            request = request.header("x-reasonix-expected-session-path", path);
        }
        send(request)
    };
    let own = scene.session.as_str();
    let mismatch = refused(409, "session_mismatch");
    assert_eq!(ask(Some(own), None).await.0, 200);
    assert_eq!(ask(None, Some(path_of(own))).await.0, 200);
    assert_eq!(ask(Some(&other), None).await, mismatch);
    assert_eq!(ask(None, Some(path_of(&other))).await, mismatch);
    // The id wins.
    assert_eq!(ask(Some(own), Some(path_of(&other))).await.0, 200);
    assert_eq!(ask(Some(&other), Some(path_of(own))).await, mismatch);
    // It fences what writes.
    let request = scene
        .client
        .request(Method::POST, "/submit")
        .header("x-reasonix-expected-session-id", &other)
        .json(&json!({ "input": "to the other one" }));
    assert_eq!(send(request).await, mismatch);
    assert_eq!(scene.items().await, Vec::<Value>::new());
}

#[tokio::test]
async fn a_submission_id_is_one_message() {
    let scene = Scene::new("full").await;
    scene.model.push(Step::text("one"));
    let body = json!({ "input": "first", "submissionId": "key" });
    let (status, first) = scene.post("/submit", body.clone()).await;
    assert_eq!((status, &first["duplicate"]), (202, &json!(false)));
    let turn = first["turnId"].as_str().unwrap();
    scene.ended(turn).await;
    let (status, again) = scene.post("/submit", body).await;
    assert_eq!((status, &again["duplicate"]), (202, &json!(true)));
    assert_eq!(again["turnId"], turn);
    let other = json!({ "input": "second", "submissionId": "key" });
    let (status, answer) = scene.post("/submit", other).await;
    assert_eq!(
        (status, answer["code"].as_str()),
        (409, Some("idempotency_conflict"))
    );
    let long = json!({ "input": "third", "submissionId": "k".repeat(201) });
    let (status, answer) = scene.post("/submit", long).await;
    assert_eq!(
        (status, answer["code"].as_str()),
        (400, Some("submission_id_invalid"))
    );
    assert_eq!(scene.model.request_count(), 1);
}

#[tokio::test]
async fn a_refusal_is_heard_over_a_body_that_is_still_on_its_way() {
    let scene = Scene::new("full").await;
    let body = "x".repeat(9 * 1024 * 1024);
    let ask = |client: TestClient, method: Method, path: &str, kind: &str| {
        let request = client.request(method, path);
        send(request.header("content-type", kind).body(body.clone()))
    };
    let json_type = "application/json";
    for _ in 0..4 {
        let client = scene.client.with_token(Some("wrong"));
        let answer = ask(client, Method::POST, "/submit", json_type).await;
        assert_eq!(answer, refused(401, "token_wrong"));
        let answer = ask(scene.client.clone(), Method::POST, "/nowhere", json_type).await;
        assert_eq!(answer, refused(404, "route_unknown"));
        let answer = ask(scene.client.clone(), Method::PUT, "/submit", json_type).await;
        assert_eq!(answer, refused(405, "method_wrong"));
        let answer = ask(scene.client.clone(), Method::POST, "/submit", "text/plain").await;
        assert_eq!(answer, refused(415, "content_type_wrong"));
        let answer = ask(scene.client.clone(), Method::POST, "/submit", json_type).await;
        assert_eq!(answer, refused(413, "body_too_large"));
    }
}
