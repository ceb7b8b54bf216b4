//! Pages: of sessions, of a transcript, of an output. Together they are the whole, each part once.

use std::collections::BTreeSet;

use holdfast_testkit::TestClient;
use holdfast_testkit::model_server::{Call, Step};
use holdfast_testkit::wait::SOON;
use reqwest::Method;
use serde_json::{Value, json};

use crate::agent::scene::{Scene, eventually, shell};

#[tokio::test]
async fn pages_of_sessions_are_the_whole_list_once() {
    let scene = Scene::new("full").await;
    let mut made = BTreeSet::from([scene.session.clone()]);
    for number in 0..6 {
        let body = json!({ "title": format!("Number {number}") });
        let created = scene.client.post_ok("/sessions", &body).await;
        made.insert(created["sessionId"].as_str().unwrap().to_owned());
    }
    let mut seen = Vec::new();
    let mut cursor = None;
    loop {
        let after = cursor.map_or_else(String::new, |cursor: String| format!("&cursor={cursor}"));
        let page = scene
            .client
            .get_ok(&format!("/sessions?limit=2{after}"))
            .await;
        let items = page["items"].as_array().unwrap();
        assert!((1..=2).contains(&items.len()), "{page}");
        let ids = items
            .iter()
            .map(|item| item["sessionId"].as_str().unwrap().to_owned());
        seen.extend(ids);
        match page["next"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => break,
        }
    }
    assert_eq!(seen.len(), made.len(), "each once: {seen:?}");
    assert_eq!(seen.into_iter().collect::<BTreeSet<_>>(), made);
    let found = scene.client.get_ok("/sessions?query=nUmBeR%203").await;
    assert_eq!(found["items"].as_array().unwrap().len(), 1);
    assert_eq!(found["items"][0]["title"], "Number 3");
}

#[tokio::test]
async fn pages_of_a_transcript_are_the_whole_of_it_once() {
    let scene = Scene::new("full").await;
    scene.write("a", "a");
    for turn in 0..3 {
        let mut step = Step::text("I look");
        for call in 0..5 {
            let id = format!("c{turn}{call}");
            step = step.with_call(Call::new(&id, "read_file", r#"{"path":"a"}"#));
        }
        scene.model.push(step);
        scene.model.push(Step::text("seen"));
        scene.turn(&format!("turn {turn}")).await;
    }
    let whole = scene.items().await;
    assert_eq!(whole.len(), 3 * (1 + 1 + 5 + 1));
    for limit in [1, 2, 3, 7, 24] {
        let mut pages: Vec<Value> = Vec::new();
        let mut before = String::new();
        loop {
            let page = scene
                .get(&format!("/transcript/page?limit={limit}{before}"))
                .await;
            pages.extend(page["items"].as_array().unwrap().iter().cloned());
            match page["before"].as_u64() {
                Some(cursor) => before = format!("&before={cursor}"),
                None => break,
            }
        }
        pages.reverse();
        assert_eq!(pages, whole, "pages of {limit}");
    }
}

#[tokio::test]
async fn a_snapshot_says_where_its_older_pages_begin() {
    let scene = Scene::new("full").await;
    scene.write("a", "a");
    // More items than a snapshot holds, and its border in the middle of a message's calls.
    for turn in 0..3 {
        let mut step = Step::text("I look");
        for call in 0..200 {
            let id = format!("c{turn}.{call}");
            step = step.with_call(Call::new(&id, "read_file", r#"{"path":"a"}"#));
        }
        scene.model.push(step);
    }
    scene.model.push(Step::text("seen"));
    scene.turn("look").await;
    let snapshot = scene.get("/transcript/snapshot").await;
    let mut items = snapshot["items"].as_array().unwrap().clone();
    assert_eq!(items.len(), 500);
    let mut before = snapshot["before"].as_u64();
    while let Some(cursor) = before {
        let page = scene
            .get(&format!("/transcript/page?limit=70&before={cursor}"))
            .await;
        items.extend(page["items"].as_array().unwrap().iter().cloned());
        before = page["before"].as_u64();
    }
    assert_eq!(items.len(), 1 + 3 * (1 + 200) + 1);
    let calls: std::collections::BTreeSet<&str> = items
        .iter()
        .filter_map(|item| item["tool"]["id"].as_str())
        .collect();
    assert_eq!(calls.len(), 600, "each once");
    assert_eq!(items.last().unwrap()["text"], "look");
}

/// All pages of an output from `offset` on, joined.
async fn read_all(scene: &Scene, attempt: &str) -> String {
    let mut text = String::new();
    let mut offset = 0;
    loop {
        let path = format!("/output?attempt={attempt}&offset={offset}");
        let page = scene.get(&path).await;
        assert_eq!(page["offset"], offset);
        text.push_str(page["text"].as_str().unwrap());
        offset = page["next"].as_u64().unwrap();
        if page["more"] == false {
            assert_eq!(page["next"], page["length"]);
            return text;
        }
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn pages_of_an_output_cut_no_character() {
    let scene = Scene::new("full").await;
    // Three bytes a character, and a page is no multiple of three.
    scene.model.push(shell(
        "s",
        "i=0; while [ $i -lt 60 ]; do cat block; i=$((i+1)); done",
    ));
    let block = "あ€漢".repeat(2000);
    scene.write("block", &block);
    scene.model.push(Step::text("printed"));
    scene.turn("print").await;
    let tool = scene.tools().await.remove(0);
    assert_eq!(tool["truncated"], true);
    let attempt = tool["attemptId"].as_str().unwrap();
    let text = read_all(&scene, attempt).await;
    assert_eq!(text.len(), block.len() * 60);
    assert!(text == block.repeat(60), "a character was cut");
    let far = scene
        .get(&format!("/output?attempt={attempt}&offset={}", u64::MAX))
        .await;
    assert_eq!(
        (far["text"].as_str(), &far["more"]),
        (Some(""), &json!(false))
    );
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_output_of_a_running_command_can_be_read() {
    let scene = Scene::new("full").await;
    // Ends within a character until it is let go on.
    let command =
        "printf 'so far \\342\\202'; until [ -e go ]; do sleep 0.02; done; printf '\\254!'";
    scene.model.push(shell("s", command));
    scene.model.push(Step::text("printed"));
    let turn = scene.submit("print").await;
    let running = scene.tool_in("s", "in_flight").await;
    let attempt = running["attemptId"].as_str().unwrap();
    let page = eventually("output", SOON, async || {
        let page = scene.get(&format!("/output?attempt={attempt}")).await;
        (page["length"] == 9).then_some(page)
    })
    .await;
    assert_eq!(page["text"], "so far ");
    assert_eq!(page["next"], 7);
    scene.write("go", "");
    scene.ended(&turn).await;
    let rest = scene
        .get(&format!("/output?attempt={attempt}&offset=7"))
        .await;
    assert_eq!(rest["text"], "€!");
    assert_eq!(rest["more"], false);
}

#[tokio::test]
async fn a_session_is_renamed_archived_and_thrown_away() {
    let scene = Scene::new("full").await;
    let path = format!("/sessions/{}", scene.session);
    let patch = async |body: Value| {
        let request = scene.client.request(Method::PATCH, &path).json(&body);
        TestClient::send(request).await.unwrap()
    };
    let listed = async || {
        let list = scene.client.get_ok("/sessions").await;
        list["items"].as_array().unwrap().clone()
    };
    assert_eq!(patch(json!({ "title": "Named" })).await.0, 204);
    assert_eq!(listed().await[0]["title"], "Named");
    assert_eq!(scene.get("/status").await["title"], "Named");
    assert_eq!(patch(json!({ "mode": "yolo" })).await.0, 400);
    assert_eq!(patch(json!({ "model": "none/none" })).await.0, 400);
    assert_eq!(patch(json!({ "archived": true })).await.0, 204);
    assert_eq!(listed().await, Vec::<Value>::new());
    assert_eq!(patch(json!({ "archived": false })).await.0, 204);
    assert_eq!(listed().await.len(), 1);

    scene.model.push(Step::text("done").held("end"));
    let turn = scene.submit("go").await;
    scene.model.wait_for_requests(1).await;
    let delete = async || {
        let request = scene.client.request(Method::DELETE, &path);
        TestClient::send(request).await.unwrap()
    };
    let (status, body) = delete().await;
    assert_eq!((status, body["code"].as_str()), (409, Some("session_busy")));
    scene.model.release("end");
    scene.ended(&turn).await;
    let log = std::fs::read(scene.session_folder().join("log.jsonl")).unwrap();
    assert_eq!(delete().await.0, 204);
    assert_eq!(listed().await, Vec::<Value>::new());
    assert_eq!(scene.client.get(&scene.path("/status")).await.0, 404);
    assert_eq!(scene.client.get_ok("/status").await["sessionId"], "");
    // Nothing is erased.
    let trash: Vec<_> = std::fs::read_dir(scene.data.join("trash"))
        .unwrap()
        .collect();
    assert_eq!(trash.len(), 1);
    let kept = trash[0].as_ref().unwrap().path().join("log.jsonl");
    assert!(std::fs::read(kept).unwrap().starts_with(&log));
}
