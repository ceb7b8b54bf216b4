//! What may come over a wire as a projection: whole ones, and ones with something wrong anywhere.

use holdfast_api::desktop::{
    Freshness, RuntimeSession, RuntimeStateProjection, Topic, TopicStatus,
};
use holdfast_domain::runtime::observed::Observed;
use holdfast_domain::runtime::snapshot::{MAX_REVISION, RuntimeState, Sample, derive};
use serde_json::{Value, json};

use super::Chance;

/// A few payloads that have to do with each other.
pub(super) fn some(chance: &mut Chance) -> Vec<Value> {
    let mut payloads = vec![projection(chance)];
    for _ in 0..2 + chance.below(5) {
        let mut next = chance.pick(&payloads).clone();
        match chance.below(10) {
            0 | 1 => next = projection(chance),
            2 | 3 => move_on(&mut next, chance),
            // The same revision with other content.
            4 => next["sessions"] = projection(chance)["sessions"].clone(),
            // A member that nobody knows is content too.
            5 => next["later"] = json!(chance.below(2)),
            6 | 7 => break_inside(&mut next, chance),
            8 => break_outside(&mut next, chance),
            _ => {
                next["epoch"] = epoch(chance);
                move_on(&mut next, chance);
            }
        }
        let is_whole = next.is_object();
        payloads.push(next);
        if !is_whole {
            // Nothing is derived from what has no members.
            break;
        }
    }
    payloads
}

fn epoch(chance: &mut Chance) -> Value {
    let letter = if chance.percent(80) { "a" } else { "b" };
    json!(letter.repeat(32))
}

fn move_on(payload: &mut Value, chance: &mut Chance) {
    if let Some(revision) = payload["revision"].as_u64() {
        let by = [1, 1, 2, MAX_REVISION / 2];
        let next = if chance.percent(30) {
            revision.saturating_sub(1)
        } else {
            revision.saturating_add(*chance.pick(&by))
        };
        payload["revision"] = json!(next);
    }
}

fn projection(chance: &mut Chance) -> Value {
    let sessions: Vec<RuntimeSession> = (0..chance.below(3)).map(|n| session(n, chance)).collect();
    let topics = sessions
        .iter()
        .map(|session| Topic {
            scope: session.scope.clone(),
            workspace_root: session.workspace_root.clone(),
            topic_id: session.topic_id.clone(),
            title: "a title".to_owned(),
            status: *chance.pick(&[TopicStatus::Idle, TopicStatus::Finishing]),
            background_jobs: session.state.background_jobs().unwrap_or_default(),
            unresolved: chance.below(3) as u64,
            freshness: session.freshness,
        })
        .collect();
    json!(RuntimeStateProjection {
        epoch: epoch(chance).as_str().unwrap_or_default().to_owned(),
        revision: *chance.pick(&[1, 2, 3, 4, 5, 40, MAX_REVISION]),
        sessions,
        topics,
    })
}

fn session(n: usize, chance: &mut Chance) -> RuntimeSession {
    let remote = chance.percent(20);
    RuntimeSession {
        tab_id: format!("t{n}"),
        scope: "local".to_owned(),
        workspace_root: "/w".to_owned(),
        topic_id: format!("s{n}"),
        session_path: format!("session-id:s{n}"),
        session_generation: chance.below(3) as u64,
        open: chance.percent(80),
        remote,
        host_id: remote.then(|| "far".to_owned()),
        freshness: *chance.pick(&[Freshness::Synced, Freshness::Unknown]),
        state: Observed::Snapshot(random_state(chance)),
    }
}

fn random_state(chance: &mut Chance) -> RuntimeState {
    RuntimeState {
        runtime_epoch: "e".repeat(32),
        revision: *chance.pick(&[1, 2, 9, MAX_REVISION]),
        ..derive(&Sample {
            closed: chance.percent(5),
            running: chance.percent(40),
            finishing: chance.percent(15),
            cancelling: chance.percent(10),
            streaming: chance.percent(40),
            pending_prompt: chance.percent(20),
            turn_id: (*chance.pick(&["", "t1", "t2"])).to_owned(),
            turn_end: (*chance.pick(&["", "completed", "failed", "cancelled"])).to_owned(),
            turn_event_seq: chance.below(100) as u64,
            background_jobs: chance.below(3) as u64,
            unresolved: chance.below(3) as u64,
            queue_paused: chance.percent(10),
        })
    }
}

/// A state that is as it should be.
pub(super) fn state(revision: u64) -> Value {
    json!(RuntimeState {
        runtime_epoch: "e".repeat(32),
        revision,
        ..derive(&Sample::default())
    })
}

/// Values that are wrong in most places and right in some.
fn odd(chance: &mut Chance) -> Value {
    let odd = [
        json!(null),
        json!(true),
        json!(0),
        json!(1),
        json!(2),
        json!(-1),
        json!(1.5),
        json!(MAX_REVISION),
        json!(MAX_REVISION + 1),
        json!(""),
        json!("x"),
        json!("7"),
        json!("idle"),
        json!("finishing"),
        json!("cancelling"),
        json!("error"),
        json!([]),
        json!([null]),
        json!({}),
    ];
    chance.pick(&odd).clone()
}

/// One member is gone or another one.
fn break_member(object: &mut Value, chance: &mut Chance) {
    let Some(members) = object.as_object_mut() else {
        return;
    };
    let names: Vec<String> = members.keys().cloned().collect();
    if names.is_empty() {
        return;
    }
    let name = chance.pick(&names).clone();
    if chance.percent(40) {
        members.remove(&name);
    } else {
        members.insert(name, odd(chance));
    }
}

fn break_outside(payload: &mut Value, chance: &mut Chance) {
    match chance.below(5) {
        0 => *payload = odd(chance),
        1 => {
            let topics = payload["topics"].as_array_mut();
            if let Some(topic) = topics.and_then(|topics| topics.first_mut()) {
                break_member(topic, chance);
            } else {
                payload["topics"] = json!([odd(chance)]);
            }
        }
        _ => break_member(payload, chance),
    }
}

fn break_inside(payload: &mut Value, chance: &mut Chance) {
    let sessions = payload["sessions"].as_array_mut();
    let first = sessions.and_then(|sessions| sessions.first_mut());
    let Some(session) = first.filter(|session| session.is_object()) else {
        payload["sessions"] = json!([odd(chance)]);
        return;
    };
    match chance.below(6) {
        0 => *session = odd(chance),
        1 => break_member(session, chance),
        2 => {
            let phase = *chance.pick(&["idle", "executing", "finishing", "closed"]);
            session["state"] = json!({ "schemaVersion": 0, "phase": phase });
        }
        _ => break_member(&mut session["state"], chance),
    }
}
