//! `glob` and `grep`.

use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_tools::FullOutput;
use serde_json::json;

use crate::place::Place;

fn filled() -> Place {
    let place = Place::new();
    place.put(".gitignore", "target/\n*.log\n");
    place.put("src/main.rs", "fn main() {\n    run();\n}\n");
    place.put("src/deep/run.rs", "pub fn run() {}\r\n");
    place.put("target/out.rs", "fn run() {}\n");
    place.put("x.log", "run\n");
    place.put(".git/config", "run\n");
    place.put("binary", b"run\0run\n");
    place.put("gbk", b"run \xd6\xd0\n");
    place
}

#[tokio::test]
async fn glob_finds_by_name_without_ignored_files() {
    let place = filled();
    let found = async |arguments| place.call("glob", arguments).await.text;
    assert_eq!(
        found(json!({"pattern": "**/*.rs"})).await,
        "src/deep/run.rs\nsrc/main.rs\n"
    );
    assert_eq!(
        found(json!({"pattern": "*.rs", "path": "src"})).await,
        "src/main.rs\n"
    );
    assert_eq!(
        found(json!({"pattern": "./*.{rs,log}"})).await,
        "[no file matches]\n"
    );
    assert_eq!(
        place.refusal("glob", &json!({"pattern": "[a"})),
        "pattern_invalid"
    );
}

#[tokio::test]
async fn grep_finds_lines_without_ignored_and_binary_files() {
    let place = filled();
    let found = async |arguments| place.call("grep", arguments).await.text;
    assert_eq!(
        found(json!({"pattern": r"run\b"})).await,
        "gbk:1:run \u{fffd}\u{fffd}\nsrc/deep/run.rs:1:pub fn run() {}\nsrc/main.rs:2:    run();\n"
    );
    assert_eq!(
        found(json!({"pattern": r"\{\}$", "glob": "*.rs"})).await,
        "src/deep/run.rs:1:pub fn run() {}\n"
    );
    assert_eq!(
        found(json!({"pattern": "run", "glob": "deep/*", "path": "src"})).await,
        "src/deep/run.rs:1:pub fn run() {}\n"
    );
    assert_eq!(
        found(json!({"pattern": "run", "path": "x.log"})).await,
        "x.log:1:run\n"
    );
    assert_eq!(
        found(json!({"pattern": "nowhere"})).await,
        "[no line matches]\n"
    );
    assert_eq!(
        place.refusal("grep", &json!({"pattern": "("})),
        "pattern_invalid"
    );
    assert_eq!(
        place.refusal("grep", &json!({"pattern": "(a{1000}){1000}"})),
        "pattern_invalid"
    );
    let outcome = place
        .call("grep", json!({"pattern": "x", "path": "none"}))
        .await;
    assert_eq!(outcome.code, Some("not_found"));
}

#[tokio::test]
async fn searches_leave_out_the_programs_own_data() {
    let place = filled();
    let text = place.call("grep", json!({"pattern": "secret"})).await.text;
    assert_eq!(text, "[no line matches]\n");
    let text = place
        .call("glob", json!({"pattern": "**/token"}))
        .await
        .text;
    assert_eq!(text, "[no file matches]\n");
}

#[cfg(unix)]
#[tokio::test]
async fn searches_follow_no_link() {
    let place = filled();
    std::os::unix::fs::symlink(place.outside(""), place.path("out")).unwrap();
    std::os::unix::fs::symlink(place.outside("secret"), place.path("file")).unwrap();
    std::os::unix::fs::symlink(place.path(""), place.path("loop")).unwrap();
    let text = place.call("grep", json!({"pattern": "secret"})).await.text;
    assert_eq!(text, "[no line matches]\n");
    let text = place.call("glob", json!({"pattern": "**/*.rs"})).await.text;
    assert_eq!(text, "src/deep/run.rs\nsrc/main.rs\n");
    assert_eq!(
        place.refusal("grep", &json!({"pattern": "s", "path": "out"})),
        "path_outside"
    );
}

#[tokio::test]
async fn results_are_bounded_and_say_so() {
    let place = Place::new();
    place.put("many", format!("{}\n", "match ".repeat(200)).repeat(2000));
    let outcome = place.call("grep", json!({"pattern": "match"})).await;
    assert!(outcome.text.len() <= 32 * 1024 && outcome.truncated);
    assert!(
        outcome
            .text
            .ends_with("[more than 500 lines match; use a narrower pattern, path or glob]\n")
    );
    let FullOutput::Bytes(all) = outcome.full_output else {
        panic!("the whole is kept");
    };
    assert_eq!(all.iter().filter(|byte| **byte == b'\n').count(), 501);

    for n in 0..1010 {
        place.put(&format!("files/{n:04}"), "");
    }
    let outcome = place.call("glob", json!({"pattern": "files/*"})).await;
    assert!(
        outcome
            .text
            .ends_with("[more than 1000 files match; use a narrower pattern or path]\n")
    );
    assert!(outcome.text.starts_with("files/0000\nfiles/0001\n"));
}

#[tokio::test]
async fn a_stopped_search_has_no_result() {
    let place = filled();
    let prepared = place.prepare("grep", &json!({"pattern": "run"})).unwrap();
    let context = place.context(&prepared);
    context.cancel.cancel();
    let outcome = place.execute(&prepared, &context).await;
    assert_eq!(
        (outcome.state, outcome.code),
        (AttemptState::Cancelled, Some("cancelled"))
    );
}
