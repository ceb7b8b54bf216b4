//! Replies of such a host, in small, and what is read from them.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_api::ApiError;
use holdfast_api::inbox::Disposition;
use holdfast_api::session::SessionsQuery;
use holdfast_api::transcript::TranscriptItem;
use serde_json::{Value, json};

use super::{shapes, transcript, waiting};
use crate::error::RemoteError;

/// 2026-12-01T12:00:00Z and that many milliseconds, as the host's ids begin.
fn id(number: u64) -> String {
    const DIGITS: &[u8] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    let time = 1_796_126_400_000 + number;
    let digits = (0..10).rev().map(|place| {
        let digit = usize::try_from(time >> (place * 5) & 31).unwrap();
        char::from(DIGITS[digit])
    });
    digits.chain("0123456789ABCDEF".chars()).collect()
}

fn record(number: u64, role: &str, content: &str) -> Value {
    json!({ "id": format!("m:{number}"), "order": number, "message": {
        "messageId": id(number), "turnId": "turn_1", "role": role, "content": content,
        "createdAt": 1_796_126_400_000_u64 + number,
    }})
}

fn call(number: u64, call_id: &str, pending: bool) -> Value {
    let mut record = record(number, "assistant", "");
    record["message"]["toolCalls"] = json!([{
        "id": call_id, "name": "bash", "arguments": "{\"command\":\"true\"}", "pending": pending,
    }]);
    record
}

fn result(call_id: &str, content: &str, error: &str) -> Value {
    json!({ "id": format!("tool:{call_id}"), "message": {
        "role": "tool", "toolCallId": call_id, "content": content, "toolResultError": error,
    }})
}

fn told(records: &[Value]) -> Value {
    json!({ "records": records, "runtime": { "status": "completed" }, "totalTurns": 0 })
}

/// Oldest first.
fn items(told: &Value) -> Vec<TranscriptItem> {
    let mut items = transcript::read(told).unwrap().items;
    items.reverse();
    items
}

fn states(told: &Value) -> Vec<(String, String, String)> {
    let tools = items(told).into_iter().filter_map(|item| item.tool);
    tools
        .map(|tool| (tool.id, tool.state, tool.output))
        .collect()
}

fn state(id: &str, state: &str, output: &str) -> (String, String, String) {
    (id.to_owned(), state.to_owned(), output.to_owned())
}

#[test]
fn rs_34_a_place_is_the_same_in_every_reading() {
    let all = [
        record(1, "user", "one"),
        record(2, "assistant", "two"),
        record(3, "user", "three"),
        record(4, "assistant", "four"),
    ];
    let places = |records: &[Value]| -> Vec<(Option<String>, u64)> {
        items(&told(records))
            .into_iter()
            .map(|item| (item.text, item.seq))
            .collect()
    };
    let whole = places(&all);
    assert!(whole.is_sorted_by(|a, b| a.1 < b.1));
    assert!(whole[3].1 < 1 << 53, "a browser can count so far");
    // The host counts anew from the first record that it still tells.
    assert_eq!(places(&all[2..]), whole[2..]);
    // Without a time of its own a record stands behind the one before it.
    let mut bare = record(0, "notice", "aside");
    bare["message"]["messageId"] = Value::Null;
    bare["message"]["createdAt"] = Value::Null;
    let mixed = places(&[all[0].clone(), bare, all[1].clone()]);
    assert_eq!((mixed[1].1, mixed[2].1), (whole[0].1 + 1, whole[1].1));
}

#[test]
fn rs_34_a_latest_part_is_not_shown_as_the_whole() {
    let mut part = told(&[record(9, "user", "nine")]);
    assert_eq!(items(&part).len(), 1);
    for (member, value) in [("totalTurns", json!(2)), ("hasOlder", json!(true))] {
        part[member] = value;
        let shown = items(&part);
        assert_eq!((shown.len(), shown[0].kind.as_str()), (2, "note"));
        assert!(shown[0].seq < shown[1].seq);
        part[member] = Value::Null;
    }
}

#[test]
fn rs_03_what_became_of_a_call_is_told_or_unknown() {
    let ended = [
        call(1, "a", false),
        result("a", "out", ""),
        call(2, "b", false),
        result("b", "no", "no"),
    ];
    assert_eq!(
        states(&told(&ended)),
        [state("a", "completed", "out"), state("b", "failed", "no")]
    );
    // The host was killed, or forgot.
    assert_eq!(
        states(&told(&[call(1, "a", false)])),
        [state("a", "unknown", "")]
    );
    // It keeps one result for two calls of one id.
    let twice = [
        call(1, "a", false),
        result("a", "out", ""),
        call(2, "a", false),
    ];
    assert_eq!(
        states(&told(&twice)),
        [state("a", "unknown", ""), state("a#2", "unknown", "")]
    );
}

#[test]
fn rs_03_a_call_that_waits_is_proposed_when_no_other_one_can_run() {
    let mut waits = told(&[call(1, "a", true)]);
    assert_eq!(states(&waits), [state("a", "in_flight", "")]);
    waits["runtime"]["status"] = json!("waiting_user");
    assert_eq!(states(&waits), [state("a", "proposed", "")]);
    waits["records"] = json!([call(1, "a", true), call(2, "b", true)]);
    assert_eq!(states(&waits)[0].1, "in_flight");
}

#[test]
fn rs_34_a_message_that_streams_is_no_item_yet() {
    let mut streams = record(2, "assistant", "so far");
    streams["message"]["pending"] = json!(true);
    streams["message"]["reasoning"] = json!("why");
    let read = transcript::read(&told(&[record(1, "user", "go"), streams])).unwrap();
    let live = read.live.unwrap();
    assert_eq!(
        (live.text.as_str(), live.reasoning.as_str()),
        ("so far", "why")
    );
    assert_eq!(read.items.len(), 1);
    assert!(transcript::read(&json!({ "records": "none" })).is_err());
}

#[test]
fn rs_16_a_message_is_found_by_its_key() {
    let mut sent = record(1, "user", "go");
    sent["message"]["submissionId"] = json!("k1");
    let mut told = told(&[sent.clone(), record(2, "assistant", "k2")]);
    told["runtime"]["submissionId"] = json!("k3");
    told["runtime"]["turnId"] = json!("turn_3");
    assert_eq!(transcript::turn_of(&told, "k1").as_deref(), Some("turn_1"));
    assert_eq!(transcript::turn_of(&told, "k2"), None);
    assert_eq!(transcript::turn_of(&told, "k3").as_deref(), Some("turn_3"));
    // After its restart it no longer tells the turn.
    sent["message"]["turnId"] = Value::Null;
    told["records"] = json!([sent]);
    assert_eq!(transcript::turn_of(&told, "k1").as_deref(), Some(""));
}

#[test]
fn rs_34_sentences_that_a_client_acts_on_get_their_code() {
    let code = |status: u16, code: &str, words: &str| {
        let refused = ApiError::new(status, code, format!("the host refused: {words}"));
        let recoded = shapes::recoded(RemoteError::Refused(Box::new(refused)));
        ApiError::from(recoded)
    };
    let busy = "session is busy; use another route";
    assert_eq!(code(409, "host_refused", busy).code, "session_busy");
    assert_eq!(code(500, "host_refused", busy).code, "host_refused");
    assert_eq!(code(409, "of_its_own", busy).code, "of_its_own");
    let other = code(409, "host_refused", "active session changed; retry");
    assert_eq!(other.code, "session_mismatch");
    let stale = code(503, "host_refused", "prompt belongs to a stale runtime");
    assert_eq!((stale.status, stale.code.as_str()), (409, "prompt_stale"));
    assert_eq!(
        shapes::recoded(RemoteError::Disconnected),
        RemoteError::Disconnected
    );
}

fn snapshot(turn_status: &str) -> Value {
    json!({
        "schemaVersion": 1, "runtimeEpoch": "e", "projectionEpoch": "p", "revision": 2,
        "phase": "executing", "running": true, "turnId": "turn_1", "turnStatus": turn_status,
        "turnEventSeq": 1, "pendingPrompt": true, "cancelRequested": false, "cancellable": true,
        "backgroundJobs": 1, "activity": "waiting_input",
        "pendingInteractions": [{ "requestId": "1", "turnId": "turn_1" }],
    })
}

#[test]
fn rs_26_the_list_of_states_is_sound_or_refused() {
    let mut told = json!({ "epoch": "h", "revision": 1, "sessions": [
        { "sessionPath": "session-id:b", "current": true, "state": snapshot("queued") },
        { "sessionPath": "session-id:a", "state": snapshot("in_progress") },
    ]});
    let states = shapes::states(&told).unwrap();
    assert_eq!(states.sessions[0].session_path, "session-id:a");
    assert!(states.sessions[1].current && !states.sessions[0].current);
    told["sessions"][0]["state"]["phase"] = json!("dreaming");
    assert!(shapes::states(&told).is_err());
}

#[test]
fn rs_34_the_list_of_sessions_is_cut_into_pages_here() {
    let open = json!({ "epoch": "h", "revision": 1, "sessions": [
        { "sessionPath": "session-id:a", "current": true, "state": snapshot("in_progress") },
    ]});
    let open = shapes::states(&open).unwrap();
    let list = json!([
        { "sessionId": "a", "mtimeMilli": 1, "title": "Old one" },
        { "sessionId": "b", "mtimeMilli": 3, "preview": "newest" },
        { "sessionId": "", "mtimeMilli": 9 },
        { "sessionId": "c", "mtimeMilli": 2 },
    ]);
    let page = |query: SessionsQuery| shapes::sessions(&list, &open, "/work", &query);
    let query = |cursor: Option<&str>, words: Option<&str>| SessionsQuery {
        query: words.map(str::to_owned),
        cursor: cursor.map(str::to_owned),
        limit: Some(2),
    };
    let first = page(query(None, None)).unwrap();
    let ids: Vec<&str> = first
        .items
        .iter()
        .map(|row| row.session_id.as_str())
        .collect();
    assert_eq!((ids, first.next.as_deref()), (vec!["b", "c"], Some("2")));
    assert_eq!(first.items[0].title, "newest");
    let rest = page(query(Some("2"), None)).unwrap();
    assert_eq!((rest.items.len(), rest.next), (1, None));
    assert_eq!(
        (
            rest.items[0].state.open,
            rest.items[0].state.background_jobs
        ),
        (true, 1)
    );
    assert_eq!(page(query(None, Some("OLD work"))).unwrap().items.len(), 1);
    let wrong = ApiError::from(page(query(Some("x"), None)).unwrap_err());
    assert_eq!(wrong.code, "cursor_invalid");
    assert!(shapes::sessions(&json!({}), &open, "", &query(None, None)).is_err());
}

#[test]
fn rs_03_a_status_without_a_snapshot_has_none() {
    let status = json!({ "sessionId": "a", "running": false, "label": "model" });
    let read = shapes::status(&status, "t".to_owned(), "/work".to_owned()).unwrap();
    assert_eq!((read.runtime_state, read.storage_failed), (None, false));
    let mut failed = status.clone();
    failed["runtimeState"] = snapshot("in_progress");
    failed["runtimeState"]["persistenceStatus"] = json!("failed");
    assert!(
        shapes::status(&failed, String::new(), String::new())
            .unwrap()
            .storage_failed
    );
    assert!(shapes::status(&json!({ "sessionId": "a" }), String::new(), String::new()).is_err());
}

#[test]
fn c16_questions_of_another_session_are_not_this_ones() {
    let prompts = json!([
        { "promptId": "1", "promptKind": "approval", "turnId": "turn_1",
          "approval": { "id": "1", "tool": "bash", "subject": "true", "generation": 4 } },
        { "promptId": "2", "promptKind": "ask", "turnId": "turn_1", "ask": {} },
        { "promptId": "1", "promptKind": "approval", "turnId": "turn_2", "approval": {} },
    ]);
    let turns = waiting::turns(&json!({ "runtimeState": snapshot("in_progress") }));
    assert_eq!(turns, BTreeSet::from(["turn_1".to_owned()]));
    let asked = waiting::asked(&prompts, &turns).unwrap();
    let names: Vec<&str> = asked
        .iter()
        .map(|asked| asked.prompt.prompt_id.as_str())
        .collect();
    assert_eq!(names, ["turn_1/1", "turn_1/2"]);
    assert_eq!(
        (asked[0].id.as_str(), asked[0].prompt.approval.generation),
        ("1", 4)
    );
    assert_eq!(asked[0].prompt.approval.scopes, ["once", "session"]);
    assert!(!asked[1].answerable && asked[1].prompt.approval.scopes.is_empty());
    assert!(waiting::turns(&json!({})).is_empty());
    assert!(waiting::asked(&Value::Null, &turns).unwrap().is_empty());
    assert!(waiting::asked(&json!([{ "turnId": "turn_1" }]), &turns).is_err());
}

#[test]
fn rs_16_a_queue_is_read_with_whole_texts() {
    let told = json!({ "revision": 5, "paused": true, "recovered": false, "capacity": { "maxItems": 64 },
    "items": [
        { "id": "i1", "preview": "the begin…", "createdAt": "1970-01-01T00:00:01Z",
          "idempotencyKey": "q1", "intent": "steer" },
        { "id": "gone", "preview": "it ran meanwhile" },
        { "id": "i2", "createdAt": "no time" },
    ]});
    let whole = |texts: &[(&str, &str)]| -> BTreeMap<String, String> {
        texts
            .iter()
            .map(|(id, text)| ((*id).to_owned(), (*text).to_owned()))
            .collect()
    };
    assert_eq!(waiting::ids(&told).unwrap(), ["i1", "gone", "i2"]);
    let view = waiting::inbox(&told, &whole(&[("i1", "the beginning"), ("i2", "two")])).unwrap();
    assert_eq!(
        (view.items.len(), view.capacity, view.paused),
        (2, 64, true)
    );
    assert_eq!(
        (view.items[0].input.as_str(), view.items[0].queued_at),
        ("the beginning", 1000)
    );
    assert_eq!((view.items[1].position, view.items[1].queued_at), (2, 0));
    let empty = json!({ "revision": 0, "paused": false, "items": null });
    assert!(
        waiting::inbox(&empty, &whole(&[]))
            .unwrap()
            .items
            .is_empty()
    );
    assert!(waiting::inbox(&json!({ "items": null }), &whole(&[])).is_err());
}

#[test]
fn rs_16_an_acceptance_says_what_became_of_the_message() {
    let told = |word: &str| {
        waiting::enqueued(&json!({ "itemId": "i", "disposition": word, "position": 1 }))
    };
    assert_eq!(
        told("queued_followup").unwrap().disposition,
        Disposition::QueuedFollowup
    );
    assert_eq!(
        told("steer_accepted").unwrap().disposition,
        Disposition::Started
    );
    assert!(
        told("of a later version").unwrap_err().is_lost(),
        "it is looked up by its key"
    );
    assert!(waiting::enqueued(&json!({ "disposition": "started" })).is_err());
}

#[test]
fn tr_42_a_recovery_snapshot_is_of_its_session() {
    let mut told = json!({
        "silent": false, "sessionPath": "", "runtimeEpoch": "e", "revision": "r", "calls": [],
        "retryEnabled": false, "retired": true,
        "statistics": { "unknown": 0, "confirmed": 0, "retried": 0, "rejected": 0, "blocked": 2 },
    });
    let read = shapes::recovery(told.clone(), "a").unwrap();
    assert_eq!(
        (read.session_path.as_str(), read.statistics.blocked),
        ("session-id:a", 2)
    );
    assert!(!read.retry_enabled && !read.dismiss_enabled);
    told["sessionPath"] = json!("session-id:b");
    assert!(shapes::recovery(told.clone(), "a").is_err());
    told["sessionPath"] = Value::Null;
    assert!(shapes::recovery(told, "a").is_err());
}
