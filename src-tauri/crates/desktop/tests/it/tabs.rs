//! Tabs, drafts and projects: as they were left, whatever happened in between.

use holdfast_api::App;
use holdfast_api::app::{Nothing, Tab};
use holdfast_api::desktop::{
    ActiveTab, AppEvent, Draft, NewSession, OpenSession, ProjectFolder, SessionChange,
};
use holdfast_api::event::Event;
use holdfast_testkit::wait::{SOON, until};

use crate::stage::{Stage, tab_of, topic, wait_for, wait_for_projection};

#[tokio::test]
async fn tabs_order_and_drafts_come_back() {
    let stage = Stage::new();
    let stand = stage.start();
    let first = stand.tab(&stage.path("left"), "left/one", "ask").await;
    let second = stand.tab(&stage.path("right"), "right/one", "edits").await;
    let draft = Draft {
        tab_id: first.tab_id.clone(),
        text: "half a thought\nwith a second line".to_owned(),
    };
    stand.app.save_draft(draft.clone()).await.unwrap();
    let active = ActiveTab {
        tab_id: first.tab_id.clone(),
    };
    stand.app.select_tab(active).await.unwrap();
    let before = stand.app.get_layout(Nothing {}).await.unwrap();
    // No quit of the app: what counts is on disk when an operation is answered.
    let copy = std::fs::read(stage.layout_file()).unwrap();
    stand.quit().await;
    std::fs::write(stage.layout_file(), copy).unwrap();

    let stand = stage.start();
    let after = stand.app.get_layout(Nothing {}).await.unwrap();
    assert_eq!(after, before);
    assert_eq!(after.tabs[0].draft, draft.text);
    assert_eq!(after.active, first.tab_id);
    assert_eq!(after.tabs[1].mode, "edits");
    // Their sessions are opened without being asked for.
    let mut events = stand.app.events();
    let both = |projection: &holdfast_api::desktop::RuntimeStateProjection| {
        projection.sessions.iter().filter(|s| s.open).count() == 2
    };
    stand.reach(&mut events, "both sessions", both).await;
    assert_eq!(second.session_id, after.tabs[1].session_id);
    stand.quit().await;
}

#[tokio::test]
async fn a_layout_that_cannot_be_read_is_kept_aside_and_said() {
    let stage = Stage::new();
    let damaged = b"{\"version\":1,\"tabs\":[{\"tabId\":".to_vec();
    std::fs::write(stage.layout_file(), &damaged).unwrap();
    std::fs::write(stage.data().join("desktop.json.bad-1"), "earlier").unwrap();
    let stand = stage.start();
    let mut events = stand.app.events();
    let code = wait_for(&mut events, "the notice", |event| match event {
        AppEvent::SessionFrames(batch) => {
            batch
                .frames
                .iter()
                .find_map(|frame| match &frame.frame.event {
                    Event::Notice { code, message } => {
                        assert!(message.contains("desktop.json.bad-2"), "{message}");
                        Some(code.clone())
                    }
                    _ => None,
                })
        }
        _ => None,
    })
    .await;
    assert_eq!(code, "layout_kept_aside");
    let kept = std::fs::read(stage.data().join("desktop.json.bad-2")).unwrap();
    assert_eq!(kept, damaged);
    // It works on, and a newer format is no reason to lose anything either.
    stand.tab(&stage.path("left"), "", "").await;
    stand.quit().await;
    std::fs::write(stage.layout_file(), "{\"version\":2}").unwrap();
    stage.start().quit().await;
    assert!(stage.data().join("desktop.json.bad-3").exists());
}

#[tokio::test]
async fn a_tab_whose_session_is_held_elsewhere_stays_with_the_reason() {
    let stage = Stage::new();
    let holder = stage.start();
    let tab = holder.tab(&stage.path("left"), "", "").await;
    // A second host on the same data: the session belongs to the first.
    let second = stage.start();
    let mut events = second.app.events();
    let held = |problem: &str| !problem.is_empty();
    let layout = loop {
        let layout = second.app.get_layout(Nothing {}).await.unwrap();
        if held(&layout.tabs[0].problem) {
            break layout;
        }
        tokio::time::timeout(SOON, events.next()).await.unwrap();
    };
    assert_eq!(layout.tabs[0].tab_id, tab.tab_id);
    assert!(second.projection().await.sessions.is_empty(), "RS-03");
    let refused = second.app.transcript_snapshot(tab_of(&tab)).await;
    assert_eq!(refused.unwrap_err().code, "session_held");
    // Once it is free, looking at the tab opens it.
    holder.quit().await;
    let active = ActiveTab {
        tab_id: tab.tab_id.clone(),
    };
    second.app.select_tab(active).await.unwrap();
    wait_for_projection(&mut events, "the session", |projection| {
        projection.sessions.iter().any(|s| s.tab_id == tab.tab_id)
    })
    .await;
    let layout = second.app.get_layout(Nothing {}).await.unwrap();
    assert_eq!(layout.tabs[0].problem, "");
    second.quit().await;
}

#[tokio::test]
async fn a_session_has_one_tab_and_goes_on_without_it() {
    let stage = Stage::new();
    let stand = stage.start();
    let first = stand.tab(&stage.path("left"), "", "").await;
    let second = stand.tab(&stage.path("right"), "", "").await;
    let open = OpenSession {
        session_id: first.session_id.clone(),
        host_id: String::new(),
    };
    let again = stand.app.open_session(open.clone()).await.unwrap();
    assert_eq!(again.tab_id, first.tab_id);
    let layout = stand.app.close_tab(tab_of(&first)).await.unwrap();
    assert_eq!(layout.active, second.tab_id);
    assert_eq!(layout.tabs.len(), 1);
    let projection = stand.projection().await;
    let session = projection
        .sessions
        .iter()
        .find(|session| session.topic_id == first.session_id)
        .unwrap();
    assert_eq!((session.tab_id.as_str(), session.open), ("", false));
    let anew = stand.app.open_session(open).await.unwrap();
    assert_ne!(anew.tab_id, first.tab_id);
    assert!(anew.session_generation > first.session_generation);
    stand.quit().await;
}

#[tokio::test]
async fn an_unknown_tab_is_refused_by_every_operation_on_tabs() {
    let stage = Stage::new();
    let stand = stage.start();
    let app = &stand.app as &dyn App;
    let tab = serde_json::json!({ "tabId": "none" });
    let with = |extra: serde_json::Value| {
        let mut request = tab.clone();
        for (name, value) in extra.as_object().unwrap() {
            request[name] = value.clone();
        }
        request
    };
    let requests = [
        ("get_tool_recovery_for_tab", with(serde_json::json!({}))),
        ("close_tab", with(serde_json::json!({}))),
        ("select_tab", with(serde_json::json!({}))),
        ("save_draft", with(serde_json::json!({"text": "x"}))),
        (
            "submit",
            with(serde_json::json!({"input": "x", "submissionId": "k"})),
        ),
        ("cancel", with(serde_json::json!({"turnId": "t"}))),
        ("pending_prompts", with(serde_json::json!({}))),
        ("transcript_snapshot", with(serde_json::json!({}))),
        (
            "transcript_page",
            with(serde_json::json!({"before": null, "limit": 5})),
        ),
        ("diff", with(serde_json::json!({"attemptId": "a"}))),
        ("output", with(serde_json::json!({"attemptId": "a"}))),
        ("jobs", with(serde_json::json!({}))),
        ("cancel_job", with(serde_json::json!({"id": "j"}))),
        (
            "background_job",
            with(serde_json::json!({"attemptId": "a"})),
        ),
    ];
    for (name, request) in requests {
        let error = holdfast_api::app::dispatch(app, name, request)
            .await
            .unwrap()
            .unwrap_err();
        assert_eq!(
            (error.status, error.code.as_str()),
            (404, "tab_unknown"),
            "{name}"
        );
    }
    stand.quit().await;
}

#[tokio::test]
async fn projects_are_folders_with_their_sessions() {
    let stage = Stage::new();
    let stand = stage.start();
    let right = ProjectFolder {
        path: stage.path("right").to_string_lossy().into_owned(),
    };
    stand.app.open_project(right.clone()).await.unwrap();
    let tab = stand.tab(&stage.path("left"), "", "").await;
    let list = stand.app.list_projects(Nothing {}).await.unwrap();
    let names: Vec<_> = list.projects.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["right", "left"], "in the order in which they came");
    assert!(list.projects[0].sessions.is_empty());
    assert_eq!(list.projects[1].sessions[0].session_id, tab.session_id);

    let left = ProjectFolder {
        path: tab.workspace_root.clone(),
    };
    let list = stand.app.remove_project(left.clone()).await.unwrap();
    assert_eq!(list.projects.len(), 1);
    std::fs::remove_dir(stage.path("right")).unwrap();
    let list = stand.app.list_projects(Nothing {}).await.unwrap();
    assert!(
        list.projects[0].missing,
        "a missing folder is shown as such"
    );
    let refused = stand.app.open_project(right).await.unwrap_err();
    assert_eq!(refused.code, "project_invalid");
    let list = stand.app.open_project(left).await.unwrap();
    assert_eq!(
        list.projects[1].sessions.len(),
        1,
        "nothing of it was touched"
    );
    stand.quit().await;
}

#[tokio::test]
async fn a_changed_title_is_in_the_tab_and_in_the_tree() {
    let stage = Stage::new();
    let stand = stage.start();
    let tab = stand.tab(&stage.path("left"), "", "").await;
    let mut events = stand.app.events();
    let change = SessionChange {
        session_id: tab.session_id.clone(),
        title: Some("fix parser".to_owned()),
        mode: Some("full".to_owned()),
        ..SessionChange::default()
    };
    stand.app.change_session(change).await.unwrap();
    let layout = stand.app.get_layout(Nothing {}).await.unwrap();
    assert_eq!(layout.tabs[0].title, "fix parser");
    assert_eq!(layout.tabs[0].mode, "full");
    wait_for_projection(&mut events, "the title", |projection| {
        topic(projection, &tab).is_some_and(|topic| topic.title == "fix parser")
    })
    .await;
    stand.quit().await;
}

#[tokio::test]
async fn a_deleted_session_takes_its_tab_along() {
    let stage = Stage::new();
    let stand = stage.start();
    let tab = stand.tab(&stage.path("left"), "", "").await;
    let session = OpenSession {
        session_id: tab.session_id.clone(),
        host_id: String::new(),
    };
    stand.app.delete_session(session).await.unwrap();
    assert!(
        stand
            .app
            .get_layout(Nothing {})
            .await
            .unwrap()
            .tabs
            .is_empty()
    );
    let projection = stand.projection().await;
    assert!(topic(&projection, &tab).is_none(), "{projection:?}");
    let closed = stand.app.close_tab(Tab { tab_id: tab.tab_id }).await;
    assert_eq!(closed.unwrap_err().code, "tab_unknown");
    stand.quit().await;
}

#[tokio::test]
async fn the_demo_is_a_fresh_project_with_its_task_as_draft() {
    let stage = Stage::new();
    let stand = stage.start();
    let first = stand.app.start_demo(Nothing {}).await.unwrap();
    let second = stand.app.start_demo(Nothing {}).await.unwrap();
    assert_eq!(first.model, "demo/demo");
    assert_eq!(first.draft, holdfast_controller::models::DEMO_TASK);
    assert_ne!(first.workspace_root, second.workspace_root);
    for tab in [&first, &second] {
        let folder = std::path::Path::new(&tab.workspace_root);
        assert!(folder.starts_with(stage.path("demo")));
        assert!(folder.join("greet.sh").is_file());
    }
    stand.quit().await;
}

#[tokio::test]
async fn a_layout_that_cannot_be_stored_is_said() {
    let stage = Stage::new();
    let stand = stage.start();
    let tab = stand.tab(&stage.path("left"), "", "").await;
    // A folder in the file's place: it can't be replaced by a file.
    std::fs::remove_file(stage.layout_file()).unwrap();
    std::fs::create_dir(stage.layout_file()).unwrap();
    std::fs::write(stage.layout_file().join("x"), "").unwrap();
    let draft = Draft {
        tab_id: tab.tab_id.clone(),
        text: "kept in memory".to_owned(),
    };
    let error = stand.app.save_draft(draft).await.unwrap_err();
    assert_eq!(
        (error.status, error.code.as_str()),
        (507, "layout_not_saved")
    );
    // The session itself is there all the same.
    let mut events = stand.app.events();
    let other = stand
        .app
        .new_session(NewSession {
            workspace_root: tab.workspace_root.clone(),
            ..NewSession::default()
        })
        .await
        .unwrap();
    wait_for(&mut events, "the notice", |event| match event {
        AppEvent::SessionFrames(batch) => batch.frames.iter().find_map(|frame| {
            matches!(&frame.frame.event, Event::Notice { code, .. } if code == "layout_not_saved")
                .then_some(())
        }),
        _ => None,
    })
    .await;
    // And stored with the next change, once it can be.
    std::fs::remove_dir_all(stage.layout_file()).unwrap();
    stand
        .app
        .select_tab(ActiveTab { tab_id: tab.tab_id })
        .await
        .unwrap();
    let text = until("the file", SOON, || {
        std::fs::read_to_string(stage.layout_file()).ok()
    })
    .await;
    assert!(text.contains("kept in memory") && text.contains(&other.tab_id));
    stand.quit().await;
}
