//! The routes that answer are those of the table, each with its method alone.

use std::collections::BTreeSet;

use holdfast_api::operations::{HOST, Method};
use holdfast_testkit::TestClient;
use reqwest::Method as Verb;

use crate::agent::scene::Scene;

fn verb(method: Method) -> Verb {
    match method {
        Method::Get => Verb::GET,
        Method::Post => Verb::POST,
        Method::Patch => Verb::PATCH,
        Method::Delete => Verb::DELETE,
    }
}

#[test]
fn every_operation_of_the_table_has_its_handler() {
    let table: Vec<&str> = HOST.iter().map(|operation| operation.name).collect();
    assert_eq!(holdfast_serve::registry(), table);
    let names: BTreeSet<&str> = table.iter().copied().collect();
    assert_eq!(names.len(), table.len(), "each name once");
    let routes: BTreeSet<(&str, Method)> = HOST.iter().map(|o| (o.path, o.method)).collect();
    assert_eq!(routes.len(), table.len(), "each route once");
}

#[tokio::test]
async fn every_route_takes_its_methods_and_no_other() {
    let scene = Scene::new("full").await;
    let paths: BTreeSet<&str> = HOST.iter().map(|operation| operation.path).collect();
    for path in paths {
        let real = path.replace("{id}", &"0".repeat(32));
        for method in [
            Verb::GET,
            Verb::POST,
            Verb::PATCH,
            Verb::DELETE,
            Verb::PUT,
            Verb::OPTIONS,
        ] {
            let bound = HOST
                .iter()
                .any(|operation| operation.path == path && verb(operation.method) == method);
            // A stream does not end; a body that is none is enough to see that a route is there.
            let request = scene
                .client
                .request(method.clone(), &real)
                .header("content-type", "application/json");
            let response = request.send().await.unwrap();
            let status = response.status().as_u16();
            if bound {
                assert_ne!(status, 405, "{method} {path}");
            } else {
                assert_eq!(status, 405, "{method} {path}");
                let body: serde_json::Value = response.json().await.unwrap();
                assert_eq!(body["code"], "method_wrong", "{method} {path}");
            }
        }
    }
}

#[tokio::test]
async fn an_unknown_route_is_404_with_a_code() {
    let scene = Scene::new("full").await;
    for path in ["/", "/nothing", "/status/more", "/STATUS", "/sessions/a/b"] {
        let (status, body) = scene.client.get(path).await;
        assert_eq!(
            (status, body["code"].as_str()),
            (404, Some("route_unknown")),
            "{path}"
        );
    }
}

#[tokio::test]
async fn health_needs_no_token_and_nothing_else_goes_without() {
    let scene = Scene::new("full").await;
    let bare = scene.client.with_token(None);
    assert_eq!(bare.get("/healthz").await.0, 200);
    let wrong = scene.client.with_token(Some("wrong"));
    let short = scene.host.token();
    let short = scene.client.with_token(Some(&short[..short.len() - 1]));
    for operation in HOST {
        let path = operation.path.replace("{id}", &scene.session);
        let method = verb(operation.method);
        for (client, code) in [
            (&bare, "token_missing"),
            (&wrong, "token_wrong"),
            (&short, "token_wrong"),
        ] {
            let answered = TestClient::send(client.request(method.clone(), &path)).await;
            let (status, body) = answered.unwrap();
            let expected = (401, Some(code));
            assert_eq!((status, body["code"].as_str()), expected, "{method} {path}");
        }
    }
    let basic = bare
        .request(Verb::GET, "/status")
        .header("authorization", format!("Basic {}", scene.host.token()));
    assert_eq!(TestClient::send(basic).await.unwrap().0, 401);
    let in_the_address = format!("/status?token={}", scene.host.token());
    assert_eq!(bare.get(&in_the_address).await.0, 401);
    assert_eq!(scene.client.get("/sessions").await.0, 200);
}
