//! RS-17…RS-21: what a projection is made of, and that no state is published under an old binding.

use std::cell::{Cell, RefCell};

use holdfast_api::desktop::{Freshness, TopicStatus};
use holdfast_api::session::{SessionRow, SessionState};
use holdfast_desktop::projection::{
    Binding, Bindings, Board, Listed, Published, Stated, States, TRIES, Titles, sample, topics,
};
use holdfast_domain::runtime::observed::{LegacyPhase, LegacyState, Observed};
use holdfast_domain::runtime::snapshot::{Commits, Sample};

const ONE: &str = "11111111111111111111111111111111";

fn binding(tab: &str, session: &str) -> Binding {
    Binding {
        tab_id: tab.to_owned(),
        session_path: format!("session-id:{session}"),
        scope: "local".to_owned(),
        workspace_root: "/project".to_owned(),
        topic_id: session.to_owned(),
        session_generation: 1,
        open: !tab.is_empty(),
        remote: false,
        host_id: None,
        controller: epoch(1),
    }
}

fn epoch(number: u8) -> String {
    format!("{number:032x}")
}

fn state(epoch: &str, sample: &Sample) -> Observed {
    let commits = Commits::new(epoch.to_owned(), "path".to_owned(), sample);
    Observed::Snapshot(commits.current().clone())
}

/// The state of a binding, as its host told it.
fn stated(binding: &Binding) -> ((String, String), Stated) {
    let key = (binding.scope.clone(), binding.session_path.clone());
    let stated = Stated {
        controller: binding.controller.clone(),
        freshness: Freshness::Synced,
        state: state(&binding.controller, &running()),
    };
    (key, stated)
}

fn running() -> Sample {
    Sample {
        running: true,
        turn_id: "t".to_owned(),
        background_jobs: 2,
        unresolved: 1,
        ..Sample::default()
    }
}

/// What happens to the bindings between copy and check.
type Change = fn(&mut Vec<Binding>);

/// Bindings that change while states are read: each reading takes one change from the list.
struct Moving {
    bindings: RefCell<Vec<Binding>>,
    states: RefCell<Published>,
    changes: RefCell<Vec<Change>>,
    readings: Cell<usize>,
}

impl Moving {
    fn new(bindings: &[Binding], changes: &[Change]) -> Self {
        let states = bindings.iter().map(stated).collect();
        Self {
            bindings: RefCell::new(bindings.to_vec()),
            states: RefCell::new(states),
            changes: RefCell::new(changes.to_vec()),
            readings: Cell::new(0),
        }
    }
}

impl Bindings for Moving {
    fn bindings(&self) -> Vec<Binding> {
        self.bindings.borrow().clone()
    }
}

impl States for Moving {
    fn states(&self) -> Published {
        self.readings.set(self.readings.get() + 1);
        if let Some(change) = self.changes.borrow_mut().pop() {
            change(&mut self.bindings.borrow_mut());
        }
        self.states.borrow().clone()
    }
}

/// One change between copy and check: it is sampled again, and what comes out is the new binding.
fn sampled_again(change: Change) -> Vec<holdfast_api::desktop::RuntimeSession> {
    let moving = Moving::new(&[binding("a", ONE)], &[change]);
    let mut expected = vec![binding("a", ONE)];
    change(&mut expected);
    // Another instance or session has a state of its own.
    for binding in &expected {
        let (key, stated) = stated(binding);
        moving.states.borrow_mut().insert(key, stated);
    }
    let sessions = sample(&moving, &moving).unwrap();
    assert_eq!(moving.readings.get(), 2, "one void sample, one good one");
    let found: Vec<_> = sessions
        .iter()
        .map(|session| {
            (
                session.tab_id.clone(),
                session.session_path.clone(),
                session.state.epoch().to_owned(),
            )
        })
        .collect();
    let wanted: Vec<_> = expected
        .iter()
        .filter(|binding| !binding.controller.is_empty())
        .map(|binding| {
            (
                binding.tab_id.clone(),
                binding.session_path.clone(),
                binding.controller.clone(),
            )
        })
        .collect();
    assert_eq!(found, wanted);
    sessions
}

#[test]
fn rs_19_another_instance_answers() {
    sampled_again(|bindings| bindings[0].controller = epoch(2));
}

#[test]
fn rs_19_no_instance_answers_any_more() {
    let sessions = sampled_again(|bindings| bindings[0].controller.clear());
    assert!(sessions.is_empty(), "no state is made up for it (RS-03)");
}

#[test]
fn rs_19_the_tab_is_another() {
    sampled_again(|bindings| bindings[0].tab_id = "b".to_owned());
}

#[test]
fn rs_19_the_tab_was_closed() {
    sampled_again(|bindings| {
        bindings[0].tab_id.clear();
        bindings[0].open = false;
    });
}

#[test]
fn rs_19_the_generation_is_another() {
    let sessions = sampled_again(|bindings| bindings[0].session_generation = 2);
    assert_eq!(sessions[0].session_generation, 2);
}

#[test]
fn rs_19_the_path_is_another() {
    sampled_again(|bindings| {
        bindings[0].session_path = format!("session-id:{}", "2".repeat(32));
    });
}

#[test]
fn rs_19_the_scope_is_another() {
    let sessions = sampled_again(|bindings| bindings[0].scope = "buildbox".to_owned());
    assert_eq!(sessions[0].scope, "buildbox");
}

#[test]
fn rs_19_the_workspace_is_another() {
    let sessions = sampled_again(|bindings| bindings[0].workspace_root = "/other".to_owned());
    assert_eq!(sessions[0].workspace_root, "/other");
}

#[test]
fn rs_19_open_became_detached() {
    let sessions = sampled_again(|bindings| bindings[0].open = false);
    assert!(!sessions[0].open);
}

#[test]
fn rs_19_a_tab_came_and_a_tab_went() {
    sampled_again(|bindings| bindings.push(binding("b", ONE)));
    assert!(sampled_again(Vec::clear).is_empty());
}

#[test]
fn rs_19_a_state_of_another_instance_is_not_taken() {
    let moving = Moving::new(&[binding("a", ONE)], &[]);
    let foreign = Binding {
        controller: epoch(9),
        ..binding("a", ONE)
    };
    moving.states.borrow_mut().extend([stated(&foreign)]);
    assert!(sample(&moving, &moving).is_none());
    moving.states.borrow_mut().clear();
    assert!(sample(&moving, &moving).is_none());
}

#[test]
fn rs_19_moving_bindings_are_given_up_and_what_was_published_stays() {
    let board = Board::new(epoch(7));
    let still = Moving::new(&[binding("a", ONE)], &[]);
    assert!(board.refresh(&still, &still, |_| Vec::new()));
    let published = board.current();
    let raise: Change = |bindings| bindings[0].session_generation += 1;
    let moving = Moving::new(&[binding("a", ONE)], &[raise; TRIES]);
    assert!(!board.refresh(&moving, &moving, |_| Vec::new()));
    assert_eq!(moving.readings.get(), TRIES);
    assert_eq!(board.current(), published);
    // The next boundary commits.
    assert!(board.refresh(&moving, &moving, |_| Vec::new()));
    assert_eq!(
        board.current().sessions[0].session_generation,
        1 + TRIES as u64
    );
}

#[test]
fn rs_03_a_tab_that_no_instance_answers_for_has_no_state() {
    let mut closed = binding("b", &"2".repeat(32));
    closed.controller.clear();
    let still = Moving::new(&[binding("a", ONE), closed], &[]);
    let sessions = sample(&still, &still).unwrap();
    assert_eq!(sessions.len(), 1, "none is made up: {sessions:?}");
    assert_eq!(sessions[0].tab_id, "a");
    assert!(topics(&sessions, &[], &Titles::new()).len() == 1);
}

#[test]
fn rs_18_sessions_are_complete_and_sorted_by_tab_and_path() {
    let two = "2".repeat(32);
    let bindings = [
        binding("b", ONE),
        binding("", &two),
        binding("a", &two),
        binding("", ONE),
    ];
    let still = Moving::new(&bindings, &[]);
    let sessions = sample(&still, &still).unwrap();
    let order: Vec<_> = sessions
        .iter()
        .map(|session| (session.tab_id.as_str(), session.topic_id.as_str()))
        .collect();
    assert_eq!(
        order,
        [("", ONE), ("", two.as_str()), ("a", &two), ("b", ONE)]
    );
    assert!(
        sessions
            .iter()
            .all(|session| session.freshness == Freshness::Synced)
    );
    assert_eq!(sessions[3].state, state(&epoch(1), &running()));
}

#[test]
fn rs_18_the_revision_moves_with_the_content_and_only_then() {
    let board = Board::new(epoch(7));
    assert_eq!(
        (board.current().revision, board.current().epoch),
        (1, epoch(7))
    );
    let still = Moving::new(&[binding("a", ONE)], &[]);
    board.refresh(&still, &still, |_| Vec::new());
    let first = board.current();
    assert_eq!(first.revision, 2);
    let mut changes = board.subscribe();
    board.refresh(&still, &still, |_| Vec::new());
    assert_eq!(board.current(), first);
    assert!(
        !changes.has_changed().unwrap(),
        "nobody is woken for nothing"
    );
    board.refresh(&still, &still, |sessions| {
        topics(sessions, &[], &Titles::new())
    });
    assert_eq!(board.current().revision, 3, "topics are content too");
    assert!(changes.has_changed().unwrap());
    assert_eq!(*changes.borrow_and_update(), board.current());
}

fn row(id: &str, workspace: &str, turn_status: &str, pending_prompt: bool) -> SessionRow {
    SessionRow {
        session_id: id.to_owned(),
        session_path: format!("session-id:{id}"),
        title: format!("title of {workspace}"),
        workspace: workspace.to_owned(),
        updated_at: 1,
        state: SessionState {
            open: false,
            phase: "idle".to_owned(),
            turn_status: turn_status.to_owned(),
            pending_prompt,
            background_jobs: 0,
            unresolved: 3,
            problem: None,
        },
    }
}

#[test]
fn rs_17_a_session_in_several_tabs_counts_once() {
    let bindings = [binding("a", ONE), binding("b", ONE), binding("c", ONE)];
    let still = Moving::new(&bindings, &[]);
    let sessions = sample(&still, &still).unwrap();
    assert_eq!(sessions.len(), 3);
    let topics = topics(
        &sessions,
        &[Listed::local(vec![row(ONE, "/project", "", false)])],
        &Titles::new(),
    );
    assert_eq!(topics.len(), 1);
    assert_eq!(topics[0].background_jobs, 2);
    assert_eq!(topics[0].unresolved, 1);
    assert_eq!(topics[0].status, TopicStatus::Thinking);
}

#[test]
fn rs_17_the_same_id_on_another_host_is_another_session() {
    let mut remote = binding("b", ONE);
    remote.scope = "buildbox".to_owned();
    remote.remote = true;
    let still = Moving::new(&[binding("a", ONE), remote], &[]);
    let sessions = sample(&still, &still).unwrap();
    let topics = topics(&sessions, &[], &Titles::new());
    let scopes: Vec<_> = topics.iter().map(|topic| topic.scope.as_str()).collect();
    assert_eq!(scopes, ["buildbox", "local"]);
}

#[test]
fn rs_21_topics_say_what_the_projection_says_and_for_others_what_their_log_says() {
    let (two, three, four) = ("2".repeat(32), "3".repeat(32), "4".repeat(32));
    let still = Moving::new(&[binding("a", ONE)], &[]);
    let sessions = sample(&still, &still).unwrap();
    let rows = [
        // The list's own word about an open session is not used.
        row(ONE, "/project", "failed", true),
        row(&two, "/a", "failed", false),
        row(&three, "/b", "failed", true),
        row(&four, "/c", "interrupted", false),
    ];
    let topics = topics(&sessions, &[Listed::local(rows.to_vec())], &Titles::new());
    let said: Vec<_> = topics
        .iter()
        .map(|topic| {
            (
                topic.workspace_root.as_str(),
                topic.status,
                topic.unresolved,
            )
        })
        .collect();
    assert_eq!(
        said,
        [
            ("/a", TopicStatus::Error, 3),
            ("/b", TopicStatus::WaitingConfirmation, 3),
            ("/c", TopicStatus::Idle, 3),
            ("/project", TopicStatus::Thinking, 1),
        ]
    );
}

#[test]
fn rs_21_a_session_that_no_list_has_yet_is_a_topic_too() {
    let still = Moving::new(&[binding("a", ONE)], &[]);
    let sessions = sample(&still, &still).unwrap();
    let titles = Titles::from([(
        ("local".to_owned(), ONE.to_owned()),
        "fix parser".to_owned(),
    )]);
    let topics = topics(&sessions, &[], &titles);
    assert_eq!(topics[0].title, "fix parser");
    assert_eq!(topics[0].workspace_root, "/project");
}

#[test]
fn rs_36_what_an_unreachable_host_listed_is_shown_as_unconfirmed() {
    let listed = Listed {
        scope: "buildbox".to_owned(),
        freshness: Freshness::Unknown,
        rows: vec![row(ONE, "/far", "failed", false)],
    };
    let topics = topics(&[], &[listed], &Titles::new());
    assert_eq!(topics[0].scope, "buildbox");
    assert_eq!(topics[0].status, TopicStatus::Error);
    assert_eq!(topics[0].freshness, Freshness::Unknown);
}

#[test]
fn rs_14_an_older_host_never_shows_finishing_and_its_silence_is_no_zero() {
    let legacy = |running, pending_prompt| {
        Observed::Legacy(LegacyState {
            schema_version: 0,
            phase: if running {
                LegacyPhase::Executing
            } else {
                LegacyPhase::Idle
            },
            running,
            pending_prompt,
            cancel_requested: None,
            cancellable: None,
            background_jobs: None,
        })
    };
    for (running, pending, word) in [
        (true, None, TopicStatus::Thinking),
        (true, Some(true), TopicStatus::WaitingConfirmation),
        (false, None, TopicStatus::Idle),
    ] {
        let bound = Binding {
            scope: "buildbox".to_owned(),
            remote: true,
            host_id: Some("buildbox".to_owned()),
            controller: "1.legacy".to_owned(),
            ..binding("a", ONE)
        };
        let still = Moving::new(std::slice::from_ref(&bound), &[]);
        let (key, mut told) = stated(&bound);
        told.state = legacy(running, pending);
        still.states.borrow_mut().insert(key, told);
        let sessions = sample(&still, &still).unwrap();
        let mut known = row(ONE, "/far", "", false);
        known.state.background_jobs = 4;
        let listed = Listed {
            scope: "buildbox".to_owned(),
            freshness: Freshness::Synced,
            rows: vec![known],
        };
        let topics = topics(&sessions, &[listed], &Titles::new());
        assert_eq!(topics[0].status, word);
        assert_eq!(topics[0].background_jobs, 4, "as its list has it");
        let wire = serde_json::to_value(&sessions[0].state).unwrap();
        assert_eq!(wire["schemaVersion"], 0);
        assert!(wire.get("backgroundJobs").is_none(), "{wire}");
    }
}
