//! RS-16: the queue as the fold of its records.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_domain::recovery::restart::{Damage, Findings, RestartStep, plan};
use holdfast_domain::transcript::inbox::Place;
use holdfast_domain::transcript::record::*;
use holdfast_domain::transcript::session::Session;
use holdfast_domain::transcript::view;
use proptest::prelude::*;

use crate::log::Log;
use crate::vectors;

fn queued(id: &str, key: &str, text: &str) -> InboxQueued {
    InboxQueued {
        item_id: id.to_owned(),
        key: key.to_owned(),
        text: text.to_owned(),
        intent: Intent::Followup,
    }
}

fn steer(id: &str) -> InboxQueued {
    InboxQueued {
        intent: Intent::Steer,
        ..queued(id, &format!("key of {id}"), id)
    }
}

fn message(turn_id: &str, key: &str, text: &str) -> UserMessage {
    UserMessage {
        turn_id: turn_id.to_owned(),
        text: text.to_owned(),
        submission_id: key.to_owned(),
        steer_item: String::new(),
    }
}

fn moved(id: &str, position: u64) -> InboxMoved {
    InboxMoved {
        item_id: id.to_owned(),
        position,
    }
}

fn deleted(id: &str) -> InboxDeleted {
    InboxDeleted {
        item_id: id.to_owned(),
    }
}

fn paused(reason: &str) -> InboxPaused {
    InboxPaused {
        recovered: reason == "host_restarted",
        reason: reason.to_owned(),
    }
}

fn resumed() -> InboxResumed {
    InboxResumed {
        reason: "person".to_owned(),
    }
}

fn waiting(session: &Session) -> Vec<&str> {
    session
        .inbox
        .items()
        .iter()
        .map(|item| item.id.as_str())
        .collect()
}

fn place(session: &Session, key: &str) -> Place {
    session.inbox.known(key).unwrap().place
}

/// What a host does with the log of one that was killed.
fn restart(log: &mut Log) -> Vec<Record> {
    let steps = plan(&log.session, &Findings::default());
    let records: Vec<Record> = steps
        .into_iter()
        .map(|step| match step {
            RestartStep::Record(record) => record,
            other => panic!("{other:?}"),
        })
        .collect();
    for record in &records {
        log.add(record.clone());
    }
    assert_eq!(plan(&log.session, &Findings::default()), []);
    records
}

#[test]
fn rs_16_items_wait_in_order_and_leave_by_their_message() {
    let mut log = Log::new();
    log.turn("t1");
    for id in ["a", "b", "c"] {
        log.add(queued(id, &format!("k{id}"), id));
    }
    assert_eq!(waiting(&log.session), ["a", "b", "c"]);
    assert_eq!(log.session.turn.as_ref().unwrap().id, "t1");
    assert_eq!(log.session.items.len(), 1, "what waits was not said");
    log.end("t1", "completed").add(message("a", "ka", "a"));
    assert_eq!(waiting(&log.session), ["b", "c"]);
    assert_eq!(place(&log.session, "ka"), Place::Taken);
    assert_eq!(place(&log.session, "kb"), Place::Queued);
    assert_eq!(log.session.turn.as_ref().unwrap().id, "a");
    assert_eq!(log.session.inbox.revision(), log.session.last_seq);
}

#[test]
fn rs_16_an_item_is_edited_moved_and_deleted_and_its_key_stays_taken() {
    let mut log = Log::new();
    for id in ["a", "b", "c"] {
        log.add(queued(id, &format!("k{id}"), id));
    }
    log.add(moved("c", 1)).add(moved("a", 99));
    assert_eq!(waiting(&log.session), ["c", "b", "a"]);
    log.add(InboxEdited {
        item_id: "b".to_owned(),
        text: Some("other".to_owned()),
        intent: None,
    });
    log.add(deleted("c"));
    let inbox = &log.session.inbox;
    assert_eq!(inbox.item("b").unwrap().1.text, "other");
    assert_eq!(inbox.item("a").unwrap().0, 2);
    // The key belongs to what came with it, not to what became of it.
    assert!(inbox.known("kb").unwrap().is_same_input("b"));
    assert!(!inbox.known("kb").unwrap().is_same_input("other"));
    assert_eq!(place(&log.session, "kc"), Place::Deleted);
    log.add(queued("d", "kc", "c"));
    assert_eq!(waiting(&log.session), ["b", "a"], "given up for good");
}

#[test]
fn rs_16_what_goes_first_goes_before_what_waits_but_behind_what_went_first_earlier() {
    let mut log = Log::new();
    log.add(queued("a", "ka", "a"));
    log.add(steer("s1")).add(steer("s2"));
    assert_eq!(waiting(&log.session), ["s1", "s2", "a"]);
    assert_eq!(log.session.inbox.next_steer().unwrap().id, "s1");
    log.add(queued("b", "kb", "b")).add(InboxEdited {
        item_id: "b".to_owned(),
        text: None,
        intent: Some(Intent::Steer),
    });
    assert_eq!(waiting(&log.session), ["s1", "s2", "b", "a"]);
    log.add(moved("a", 1));
    assert_eq!(log.session.inbox.next_steer(), None, "a person's order");
}

#[test]
fn rs_16_a_message_that_comes_into_a_turn_leaves_it_as_it_is() {
    let mut log = Log::new();
    log.turn("t1").says("t1", 1, &[]);
    log.add(steer("s"));
    let before = log.session.turn.clone();
    log.add(UserMessage {
        steer_item: "s".to_owned(),
        ..message("t1", "key of s", "s")
    });
    assert_eq!(log.session.turn, before);
    assert_eq!(waiting(&log.session), Vec::<&str>::new());
    let last = log.entries.last().unwrap().record.clone();
    assert_eq!(Record::parse(last.kind(), &last.payload().unwrap()), last);
    let known = log.session.inbox.known("key of s").unwrap();
    assert_eq!((known.turn_id.as_str(), known.place), ("t1", Place::Taken));
    let said = view::outbound(&log.session);
    assert_eq!(said.len(), 3, "{said:?}");
}

#[test]
fn rs_16_behind_a_restart_the_queue_is_paused_and_recovered() {
    let mut log = Log::new();
    log.turn("t1").add(queued("a", "ka", "a"));
    let records = restart(&mut log);
    assert_eq!(records.len(), 2, "{records:?}");
    let inbox = &log.session.inbox;
    assert!(inbox.is_paused() && inbox.is_recovered());
    assert_eq!((inbox.next(), inbox.next_steer()), (None, None));
    log.add(resumed());
    assert_eq!(log.session.inbox.next().unwrap().id, "a");
    assert!(!log.session.inbox.is_recovered());
    log.add(paused(InboxPaused::BY_PERSON));
    restart(&mut log);
    assert!(log.session.inbox.is_recovered());
}

#[test]
fn rs_16_an_accepted_message_whose_turn_had_not_started_is_an_item() {
    let mut log = Log::new();
    log.turn("t1").end("t1", "completed");
    log.add(queued("a", "ka", "a")).add(queued("b", "kb", "b"));
    log.add(message("a", "ka", "a"));
    let at = log.entries.last().unwrap().at;
    let records = restart(&mut log);
    assert_eq!(records.len(), 2, "{records:?}");
    assert_eq!(waiting(&log.session), ["a", "b"]);
    let item = log.session.inbox.items()[0].clone();
    assert!(item.returned);
    assert_eq!((item.key.as_str(), item.at), ("ka", at));
    assert_eq!(place(&log.session, "ka"), Place::Queued);
    assert_eq!(log.session.items.len(), 1, "it is in one place only");
    let ended = log.session.turn.clone().unwrap().ended.unwrap();
    assert_eq!(ended.status, "interrupted");
    // Resumed, it begins the turn that the client was told of.
    log.add(resumed()).add(message("a", "ka", "a"));
    let turn = log.session.turn.clone().unwrap();
    assert_eq!((turn.id.as_str(), turn.ended), ("a", None));
    assert_eq!(waiting(&log.session), ["b"]);
}

#[test]
fn rs_16_a_message_whose_turn_began_is_not_an_item_and_across_damage_neither() {
    let mut log = Log::new();
    log.turn("t1");
    restart(&mut log);
    assert_eq!(waiting(&log.session), Vec::<&str>::new());
    log.add(message("t2", "k2", "x"));
    let seq = log.session.last_seq;
    let damage = Damage {
        after_seq: seq,
        before_seq: None,
    };
    let findings = Findings {
        damage: vec![damage],
        ..Findings::default()
    };
    let steps = plan(&log.session, &findings);
    assert!(
        matches!(&steps[..], [RestartStep::Record(Record::TurnEnded(_))]),
        "{steps:?}"
    );
}

#[test]
fn rs_16_a_pause_ends_with_the_last_item_unless_a_person_asked_for_it() {
    for (reason, stays) in [
        (InboxPaused::BY_PERSON, true),
        ("host_restarted", false),
        ("turn_failed", false),
    ] {
        let mut log = Log::new();
        log.add(queued("a", "ka", "a")).add(paused(reason));
        assert_eq!(log.session.inbox.pause_reason(), reason);
        log.add(deleted("a"));
        assert_eq!(log.session.inbox.is_paused(), stays, "{reason}");
        assert!(!log.session.inbox.is_recovered());
    }
}

#[test]
fn rs_16_records_about_nothing_change_nothing() {
    let mut log = Log::new();
    log.turn("t1").add(queued("a", "ka", "a"));
    let before = log.session.inbox.clone();
    log.add(deleted("x")).add(moved("x", 1));
    log.add(InboxEdited {
        item_id: "x".to_owned(),
        text: Some("x".to_owned()),
        intent: None,
    });
    log.add(InboxReturned {
        turn_id: "t1".to_owned(),
    });
    log.add(queued("a", "other", "again"));
    log.add(queued("b", "ka", "again"));
    assert_eq!(log.session.inbox, before);
    assert_eq!(log.session.items.len(), 1);
}

/// One thing that may happen to a queue: what, to which of a few items, with which number.
fn moves() -> impl Strategy<Value = Vec<(u8, u8, u8)>> {
    prop::collection::vec((0..11u8, 0..6u8, 0..8u8), 0..60)
}

proptest! {
    #![proptest_config(vectors::cases(400))]

    #[test]
    fn rs_16_no_message_is_lost_or_doubled_whatever_happens(moves in moves()) {
        let mut log = Log::new();
        let mut accepted: BTreeMap<String, String> = BTreeMap::new();
        let mut given_up: BTreeSet<String> = BTreeSet::new();
        for (what, which, number) in moves {
            let (id, key) = (format!("i{which}"), format!("k{which}"));
            let is_new = log.session.inbox.known(&key).is_none();
            match what {
                0 | 1 => {
                    let mut item = queued(&id, &key, &id);
                    if what == 1 {
                        item.intent = Intent::Steer;
                    }
                    if is_new {
                        accepted.insert(key, id);
                    }
                    log.add(item);
                }
                2 if is_new && log.session.open_turn().is_none() => {
                    accepted.insert(key.clone(), id.clone());
                    log.add(message(&id, &key, &id));
                }
                3 => {
                    if log.session.inbox.item(&id).is_some() {
                        given_up.insert(key);
                    }
                    log.add(deleted(&id));
                }
                4 => {
                    log.add(moved(&id, number.into()));
                }
                5 => {
                    log.add(paused(InboxPaused::BY_PERSON));
                }
                6 => {
                    log.add(resumed());
                }
                7 => {
                    restart(&mut log);
                    let inbox = &log.session.inbox;
                    prop_assert!(inbox.items().is_empty() || inbox.is_paused() && inbox.is_recovered());
                }
                8 if log.session.open_turn().is_none() => {
                    let next = log.session.inbox.next().cloned();
                    if let Some(item) = next {
                        log.add(message(&item.id, &item.key, &item.text));
                    }
                }
                9 => {
                    let turn = log.session.open_turn().map(|turn| turn.id.clone());
                    if let Some(turn_id) = turn {
                        let steer = log.session.inbox.next_steer().cloned();
                        log.add(TurnStarted { turn_id: turn_id.clone(), continuation: false });
                        if let Some(item) = steer {
                            log.add(UserMessage {
                                steer_item: item.id.clone(),
                                ..message(&turn_id, &item.key, &item.text)
                            });
                        }
                    }
                }
                10 => {
                    let turn = log.session.turn.as_ref().filter(|turn| turn.started).map(|turn| turn.id.clone());
                    if let Some(turn_id) = turn {
                        log.end(&turn_id, "completed");
                    }
                }
                _ => {}
            }
            let session = &log.session;
            let ids: BTreeSet<&str> = waiting(session).into_iter().collect();
            prop_assert_eq!(ids.len(), session.inbox.items().len(), "an item twice");
            let said: Vec<String> = session
                .items
                .iter()
                .filter_map(|item| match item {
                    holdfast_domain::transcript::session::Item::User { text, .. } => {
                        Some(text.clone())
                    }
                    _ => None,
                })
                .collect();
            for (key, id) in &accepted {
                let known = session.inbox.known(key).unwrap();
                prop_assert!(known.is_same_input(id));
                let times = said.iter().filter(|text| *text == id).count();
                let waits = ids.contains(id.as_str());
                match known.place {
                    Place::Queued => prop_assert!(waits && times == 0),
                    Place::Taken => prop_assert!(!waits && times == 1),
                    Place::Deleted => prop_assert!(!waits && times == 0),
                }
                prop_assert_eq!(known.place == Place::Deleted, given_up.contains(key));
            }
        }
        let again = Session::from_entries(&log.entries);
        prop_assert_eq!(&again.inbox, &log.session.inbox);
    }
}
