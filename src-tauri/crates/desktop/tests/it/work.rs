//! Sessions at work in several tabs: side by side, with questions, with recovery.

use holdfast_api::App;
use holdfast_api::app::{Nothing, TabApprove, TabCancel, TabPage, TabSubmit};
use holdfast_api::desktop::{ActiveTab, Draft, RuntimeStateProjection, TabView, TopicStatus};
use holdfast_api::inbox::{
    Intent, ReceiptState, TabEditItem, TabEnqueue, TabItem, TabKey, TabMoveItem,
};
use holdfast_testkit::Step;

use crate::stage::{Stage, Stand, tab_of, topic, wait_for_projection};

fn message(tab: &TabView, input: &str) -> TabSubmit {
    TabSubmit {
        tab_id: tab.tab_id.clone(),
        input: input.to_owned(),
        submission_id: format!("key-{input}"),
    }
}

fn shows(projection: &RuntimeStateProjection, tab: &TabView, status: TopicStatus) -> bool {
    topic(projection, tab).is_some_and(|topic| topic.status == status)
}

async fn texts(stand: &Stand, tab: &TabView) -> Vec<String> {
    let snapshot = stand.app.transcript_snapshot(tab_of(tab)).await.unwrap();
    let items = snapshot.items.into_iter().rev();
    items.filter_map(|item| item.text).collect()
}

#[tokio::test]
async fn two_tabs_on_two_projects_run_at_once() {
    let stage = Stage::new();
    stage.left.push(Step::text("from the left").held("go"));
    stage.right.push(Step::text("from the right").held("go"));
    let stand = stage.start();
    let left = stand.tab(&stage.path("left"), "left/one", "ask").await;
    let right = stand.tab(&stage.path("right"), "right/one", "ask").await;
    let mut events = stand.app.events();
    stand.app.submit(message(&left, "one")).await.unwrap();
    stand.app.submit(message(&right, "two")).await.unwrap();
    stage.left.wait_for_requests(1).await;
    stage.right.wait_for_requests(1).await;
    let both = |status| {
        let (left, right) = (left.clone(), right.clone());
        move |projection: &RuntimeStateProjection| {
            shows(projection, &left, status) && shows(projection, &right, status)
        }
    };
    stand
        .reach(&mut events, "both at work", both(TopicStatus::Thinking))
        .await;
    stage.right.release("go");
    stage.left.release("go");
    wait_for_projection(&mut events, "both done", both(TopicStatus::Idle)).await;
    assert_eq!(texts(&stand, &left).await, ["one", "from the left"]);
    assert_eq!(texts(&stand, &right).await, ["two", "from the right"]);
    let page = TabPage {
        tab_id: left.tab_id.clone(),
        before: None,
        limit: 1,
    };
    let page = stand.app.transcript_page(page).await.unwrap();
    assert_eq!(page.items.len(), 1);
    assert!(page.before.is_some());
    stand.quit().await;
}

#[tokio::test]
async fn rs_15_a_question_of_another_tab_shows_and_is_answered_once() {
    let stage = Stage::new();
    let call = r#"{"path":"note.txt","content":"hello\n"}"#;
    stage.left.push(Step::call("c1", "write_file", call));
    stage.left.push(Step::text("written"));
    let stand = stage.start();
    let left = stand.tab(&stage.path("left"), "left/one", "ask").await;
    let right = stand.tab(&stage.path("right"), "right/one", "ask").await;
    let mut events = stand.app.events();
    stand.app.submit(message(&left, "write")).await.unwrap();
    let active = ActiveTab {
        tab_id: right.tab_id.clone(),
    };
    stand.app.select_tab(active).await.unwrap();
    let asked = |projection: &RuntimeStateProjection| {
        shows(projection, &left, TopicStatus::WaitingConfirmation)
    };
    let projection = wait_for_projection(&mut events, "the question", asked).await;
    assert!(shows(&projection, &right, TopicStatus::Idle));
    assert!(stand.prompts(&right).await.is_empty());
    let prompt = stand.prompts(&left).await.remove(0);
    let answer = TabApprove {
        tab_id: left.tab_id.clone(),
        id: prompt.prompt_id.clone(),
        generation: prompt.approval.generation,
        allow: true,
        scope: "once".to_owned(),
        reason: String::new(),
    };
    // In the wrong tab it means nothing.
    let astray = TabApprove {
        tab_id: right.tab_id.clone(),
        ..answer.clone()
    };
    assert_eq!(
        stand.app.approve(astray).await.unwrap_err().code,
        "prompt_not_pending"
    );
    stand.app.approve(answer.clone()).await.unwrap();
    assert_eq!(
        stand.app.approve(answer).await.unwrap_err().code,
        "prompt_not_pending"
    );
    wait_for_projection(&mut events, "the end", |projection| {
        shows(projection, &left, TopicStatus::Idle)
    })
    .await;
    let written = std::fs::read_to_string(stage.path("left").join("note.txt")).unwrap();
    assert_eq!(written, "hello\n");
    let recovery = stand.app.get_tool_recovery_for_tab(tab_of(&left)).await;
    assert!(recovery.unwrap().calls.is_empty());
    stand.quit().await;
}

#[tokio::test]
async fn rs_16_an_accepted_message_clears_its_draft_and_only_that() {
    let stage = Stage::new();
    let stand = stage.start();
    let tab = stand.tab(&stage.path("left"), "left/one", "ask").await;
    let draft = |text: &str| Draft {
        tab_id: tab.tab_id.clone(),
        text: text.to_owned(),
    };
    stand.app.save_draft(draft("do this\n")).await.unwrap();
    let first = stand.app.submit(message(&tab, "do this")).await.unwrap();
    let text = std::fs::read_to_string(stage.layout_file()).unwrap();
    assert!(!text.contains("do this"), "cleared on disk too");
    // The same key again is the same message.
    let again = stand.app.submit(message(&tab, "do this")).await.unwrap();
    assert_eq!((again.turn_id, again.duplicate), (first.turn_id, true));
    stand
        .app
        .save_draft(draft("the next thought"))
        .await
        .unwrap();
    stand.app.submit(message(&tab, "something else")).await.ok();
    let layout = stand.app.get_layout(holdfast_api::app::Nothing {}).await;
    assert_eq!(layout.unwrap().tabs[0].draft, "the next thought");
    stand.quit().await;
}

#[tokio::test]
async fn stop_names_its_turn() {
    let stage = Stage::new();
    stage.left.push(Step::text("never").held("never"));
    let stand = stage.start();
    let tab = stand.tab(&stage.path("left"), "left/one", "ask").await;
    let mut events = stand.app.events();
    let turn = stand.app.submit(message(&tab, "run")).await.unwrap();
    stage.left.wait_for_requests(1).await;
    let stop = |turn_id: &str| TabCancel {
        tab_id: tab.tab_id.clone(),
        turn_id: turn_id.to_owned(),
    };
    let other = stand.app.cancel(stop("another")).await.unwrap();
    assert!(other.already_ended);
    let own = stand.app.cancel(stop(&turn.turn_id)).await.unwrap();
    assert!(!own.already_ended);
    stage.left.wait_for_abort(0).await;
    wait_for_projection(&mut events, "the end", |projection| {
        shows(projection, &tab, TopicStatus::Idle)
    })
    .await;
    stand.quit().await;
}

#[tokio::test]
async fn rs_18_a_session_at_rest_is_a_topic_after_a_restart() {
    let stage = Stage::new();
    let stand = stage.start();
    let tab = stand.tab(&stage.path("left"), "left/one", "ask").await;
    let mut events = stand.app.events();
    stand
        .app
        .submit(message(&tab, "first words"))
        .await
        .unwrap();
    wait_for_projection(&mut events, "the title", |projection| {
        topic(projection, &tab)
            .is_some_and(|topic| topic.title == "first words" && topic.status == TopicStatus::Idle)
    })
    .await;
    stand.app.close_tab(tab_of(&tab)).await.unwrap();
    stand.quit().await;

    let stand = stage.start();
    let mut events = stand.app.events();
    let listed = |projection: &RuntimeStateProjection| topic(projection, &tab).is_some();
    let projection = stand.reach(&mut events, "the list", listed).await;
    assert!(projection.sessions.is_empty(), "nobody opened it");
    assert_eq!(topic(&projection, &tab).unwrap().title, "first words");
    stand.quit().await;
}

#[tokio::test]
async fn rs_16_a_tabs_queue_is_read_and_changed_and_clears_the_draft_of_what_it_took() {
    let stage = Stage::new();
    stage.left.push(Step::text("first").held("end"));
    let stand = stage.start();
    let tab = stand.tab(&stage.path("left"), "left/one", "ask").await;
    let mut events = stand.app.events();
    stand.app.submit(message(&tab, "run")).await.unwrap();
    stage.left.wait_for_requests(1).await;
    let draft = Draft {
        tab_id: tab.tab_id.clone(),
        text: "then this\n".to_owned(),
    };
    stand.app.save_draft(draft).await.unwrap();
    let wanted = |input: &str| TabEnqueue {
        tab_id: tab.tab_id.clone(),
        input: input.to_owned(),
        intent: Intent::Followup,
        idempotency_key: format!("key of {input}"),
    };
    let first = stand.app.enqueue(wanted("then this")).await.unwrap();
    let second = stand.app.enqueue(wanted("and this")).await.unwrap();
    let layout = stand.app.get_layout(Nothing {}).await.unwrap();
    assert_eq!(layout.tabs[0].draft, "");
    let moved = TabMoveItem {
        tab_id: tab.tab_id.clone(),
        item_id: second.item_id.clone(),
        position: 1,
    };
    stand.app.move_item(moved).await.unwrap();
    let edited = TabEditItem {
        tab_id: tab.tab_id.clone(),
        item_id: second.item_id,
        input: Some("and that".to_owned()),
        intent: None,
    };
    stand.app.edit_item(edited).await.unwrap();
    let inbox = stand.app.inbox(tab_of(&tab)).await.unwrap();
    let waiting: Vec<&str> = inbox.items.iter().map(|item| item.input.as_str()).collect();
    assert_eq!(waiting, ["and that", "then this"]);
    stand.app.pause_inbox(tab_of(&tab)).await.unwrap();
    let given_up = TabItem {
        tab_id: tab.tab_id.clone(),
        item_id: first.item_id,
    };
    stand.app.delete_item(given_up).await.unwrap();
    let key = TabKey {
        tab_id: tab.tab_id.clone(),
        key: "key of then this".to_owned(),
    };
    let receipt = stand.app.inbox_receipt(key).await.unwrap();
    assert_eq!(receipt.state, ReceiptState::Deleted);
    stage.left.release("end");
    stand.app.resume_inbox(tab_of(&tab)).await.unwrap();
    wait_for_projection(&mut events, "the end", |projection| {
        shows(projection, &tab, TopicStatus::Idle)
    })
    .await;
    assert_eq!(texts(&stand, &tab).await[2], "and that");
    stand.quit().await;
}
