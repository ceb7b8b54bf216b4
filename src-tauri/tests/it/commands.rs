//! Each command reaches the operation of its name, with the request as it was given, and failures
//! are a code and a sentence.

use serde_json::{Value, json};

use crate::support::{Recording, Shell, invoke, refusal, request};

#[test]
fn every_operation_is_reached_with_its_request_and_answers_its_refusal() {
    let app = Recording::answering(&[]);
    let shell = Shell::over(app.clone());
    let window = shell.window("main");
    let mut expected = Vec::new();
    for operation in holdfast_api::app::APP {
        let request = request(operation);
        let answer = invoke(&window, operation, json!({ "request": request }));
        assert_eq!(answer, Err(refusal()), "{operation}");
        expected.push(((*operation).to_owned(), request));
    }
    assert_eq!(app.calls(), expected);
}

#[test]
fn a_reply_comes_as_the_operation_gave_it() {
    let layout = json!({ "tabs": [], "active": "" });
    let cancelled = json!({ "alreadyEnded": true });
    let app = Recording::answering(&[
        ("get_layout", layout.clone()),
        ("cancel", cancelled.clone()),
        ("pending_prompts", json!([])),
    ]);
    let shell = Shell::over(app);
    let window = shell.window("main");
    let call = |operation| invoke(&window, operation, json!({ "request": request(operation) }));
    assert_eq!(call("get_layout"), Ok(layout));
    assert_eq!(call("cancel"), Ok(cancelled));
    assert_eq!(call("pending_prompts"), Ok(json!([])));
}

#[test]
fn a_request_with_an_unknown_field_is_refused_and_reaches_nothing() {
    let app = Recording::answering(&[]);
    let shell = Shell::over(app.clone());
    let window = shell.window("main");
    for operation in holdfast_api::app::APP {
        let mut request = request(operation);
        request
            .as_object_mut()
            .unwrap()
            .insert("surprise".to_owned(), json!(1));
        let error = invoke(&window, operation, json!({ "request": request })).unwrap_err();
        assert_eq!(error["code"], "body_invalid", "{operation}: {error}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("surprise"), "{operation}: {message}");
    }
    assert_eq!(app.calls(), Vec::<(String, Value)>::new());
}

#[test]
fn a_missing_request_is_refused_with_a_code() {
    let app = Recording::answering(&[]);
    let shell = Shell::over(app.clone());
    let window = shell.window("main");
    for operation in holdfast_api::app::APP {
        let error = invoke(&window, operation, json!({})).unwrap_err();
        assert_eq!(error["code"], "body_invalid", "{operation}: {error}");
    }
    assert_eq!(app.calls(), Vec::<(String, Value)>::new());
}
