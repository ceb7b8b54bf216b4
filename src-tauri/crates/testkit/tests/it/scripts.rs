//! The model server as a program, with a script from a file.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use holdfast_testkit::TestClient;
use serde_json::json;

#[tokio::test]
async fn the_program_serves_a_script_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("script.json");
    let script = json!({
        "steps": [
            { "text": ["hel", "lo"], "fault": "non_stream", "gate": { "name": "go" } },
            { "fault": { "status": { "status": 503, "headers": { "retry-after": "1" } } } }
        ],
        "when_exhausted": "fail"
    });
    std::fs::write(&path, script.to_string()).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_holdfast-model-server"))
        .args(["--script", path.to_str().unwrap()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let ready: serde_json::Value = serde_json::from_str(&line).unwrap();
    let url = ready["url"].as_str().unwrap();
    let client = TestClient::new(url, None);
    let control = TestClient::new(url.trim_end_matches("/v1"), None);

    let request = json!({ "model": "m", "messages": [] });
    let (first, _) = tokio::join!(client.post("/chat/completions", &request), async {
        control.post_ok("/control/release/go", &json!({})).await
    });
    assert_eq!(first.0, 200);
    assert_eq!(first.1["choices"][0]["message"]["content"], "hello");
    assert_eq!(client.post("/chat/completions", &request).await.0, 503);
    assert_eq!(client.post("/chat/completions", &request).await.0, 400);
    control
        .post_ok("/control/push", &json!({ "text": ["more"] }))
        .await;
    let (status, body) = client.post("/chat/completions", &request).await;
    assert_eq!(status, 200);
    assert!(
        body.as_str().unwrap().ends_with("data: [DONE]\n\n"),
        "{body}"
    );
    let requests = control.get_ok("/control/requests").await;
    assert_eq!(requests.as_array().unwrap().len(), 4);
    assert_eq!(requests[0]["json"], request);

    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}
