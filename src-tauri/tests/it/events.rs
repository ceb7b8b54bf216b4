//! Events reach the window `main` under their names, with the payload that they have over HTTP.

use std::sync::mpsc;
use std::time::Duration;

use holdfast_api::desktop::{AppEvent, RemoteTab, Resync, RuntimeStateProjection, SessionFrames};
use serde_json::Value;
use tauri::Listener;

use crate::support::{Recording, Shell};

fn events() -> Vec<AppEvent> {
    vec![
        AppEvent::RuntimeStateChanged(RuntimeStateProjection {
            epoch: "0".repeat(32),
            revision: 7,
            sessions: Vec::new(),
            topics: Vec::new(),
        }),
        AppEvent::Resync(Resync {
            recovery_version: 3,
        }),
        AppEvent::RemoteTabUpdated(RemoteTab {
            host_id: "h1".to_owned(),
            tab_ids: vec!["t1".to_owned()],
        }),
        AppEvent::SessionFrames(SessionFrames { frames: Vec::new() }),
    ]
}

#[test]
fn events_reach_the_window_in_order_under_the_names_of_the_http_stream() {
    let shell = Shell::over(Recording::answering(&[]));
    let window = shell.window("main");
    let other = shell.window("other");
    let (heard, hearing) = mpsc::channel::<(String, Value)>();
    let (astray, nothing) = mpsc::channel::<String>();
    let as_over_http: Vec<Value> = events()
        .iter()
        .map(|event| serde_json::to_value(event).unwrap())
        .collect();
    for event in &as_over_http {
        let name = event["event"].as_str().unwrap().to_owned();
        let heard = heard.clone();
        window.listen(name.clone(), {
            let name = name.clone();
            move |event| {
                let payload = serde_json::from_str(event.payload()).unwrap();
                heard.send((name.clone(), payload)).unwrap();
            }
        });
        let astray = astray.clone();
        other.listen(name.clone(), move |_| astray.send(name.clone()).unwrap());
    }
    for event in events() {
        holdfast_app::events::send(shell.app.handle(), event).unwrap();
    }
    for event in as_over_http {
        let (name, payload) = hearing.recv_timeout(Duration::from_secs(10)).unwrap();
        assert_eq!(event["event"], name);
        assert_eq!(event["payload"], payload);
    }
    assert!(nothing.try_recv().is_err(), "another window heard an event");
}
