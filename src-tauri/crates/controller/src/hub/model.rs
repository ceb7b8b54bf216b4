//! The stream under a model checker: every interleaving of its steps, within a bound on how often a
//! thread is taken off (RS-11, RS-12).

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use holdfast_api::event::{Event, Frame};
use holdfast_api::session::RuntimeStates;
use holdfast_domain::runtime::snapshot::{Commits, Phase, RuntimeState, Sample};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

use super::Stream;
use super::parts::{Bell, Ear, Lock, Parts};
use super::reader::Reader;
use super::ring::Inner;

/// The same protocol on the model checker's own lock and bell.
#[derive(Debug)]
struct Model;

impl Parts for Model {
    type Lock = Mutex<Inner>;
    type Bell = Gong;
}

impl Lock for Mutex<Inner> {
    fn new(inner: Inner) -> Self {
        Self::new(inner)
    }

    fn with<R>(&self, work: impl FnOnce(&mut Inner) -> R) -> R {
        work(&mut self.lock().unwrap())
    }
}

/// A count of rings, and a wait for another one: what tokio's `watch` is.
#[derive(Debug, Clone)]
struct Gong(Arc<(Mutex<u64>, Condvar)>);

#[derive(Debug)]
struct Listener {
    gong: Gong,
    heard: u64,
}

impl Bell for Gong {
    type Ear = Listener;

    fn new() -> Self {
        Self(Arc::new((Mutex::new(0), Condvar::new())))
    }

    fn ring(&self) {
        *self.0.0.lock().unwrap() += 1;
        self.0.1.notify_all();
    }

    fn ear(&self) -> Listener {
        let heard = *self.0.0.lock().unwrap();
        Listener {
            gong: self.clone(),
            heard,
        }
    }
}

impl Ear for Listener {
    fn forget(&mut self) {
        self.heard = *self.gong.0.0.lock().unwrap();
    }

    /// Waits in place: to the model checker a wait that nobody ends is a deadlock, and a failure.
    async fn rung(&mut self) -> bool {
        let (rings, more) = &*self.gong.0;
        let mut now = rings.lock().unwrap();
        while *now == self.heard {
            now = more.wait(now).unwrap();
        }
        self.heard = *now;
        true
    }
}

type Hub = std::sync::Arc<Stream<Model>>;

const SESSION: &str = "5";

fn explore(test: impl Fn(Hub) + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    // Known defects of such code show with two switches; three leave a margin.
    builder.preemption_bound = Some(3);
    builder.check(move || test(Hub::new(Stream::new("e".repeat(32)))));
}

/// The states of the reader's next batch.
fn next(reader: &mut Reader<Model>) -> Vec<RuntimeState> {
    let batch = {
        let mut next = pin!(reader.next());
        match next.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(batch) => batch,
            Poll::Pending => panic!("the model's ear waits in place"),
        }
    };
    batch
        .iter()
        .filter_map(|outgoing| {
            let frame: Frame = serde_json::from_str(&outgoing.data).unwrap();
            match frame.event {
                Event::RuntimeState { runtime_state, .. } => Some(runtime_state),
                _ => None,
            }
        })
        .collect()
}

fn running(turn: &str, streaming: bool) -> Sample {
    Sample {
        running: true,
        streaming,
        turn_id: turn.to_owned(),
        ..Sample::default()
    }
}

fn over(turn: &str) -> Sample {
    Sample {
        turn_id: turn.to_owned(),
        turn_end: "completed".to_owned(),
        ..Sample::default()
    }
}

/// What a session's actor does at its boundaries: commits, and publishes what changed.
fn work(hub: &Hub, epoch: &str, samples: &[Sample]) -> Commits {
    let mut commits = Commits::new(epoch.to_owned(), SESSION.to_owned(), &Sample::default());
    hub.publish_state(SESSION, commits.current().clone());
    for sample in samples {
        let before = commits.current().revision;
        if let Some(state) = commits.commit(sample) {
            assert_eq!(state.revision, before + 1, "a revision grows by one");
            hub.publish_state(SESSION, state.clone());
        }
    }
    commits
}

/// Newer after older, and one content for each revision.
fn follows(later: &RuntimeState, earlier: &RuntimeState) {
    assert_eq!(later.runtime_epoch, earlier.runtime_epoch);
    assert!(
        later.revision > earlier.revision || later == earlier,
        "{later:?} came after {earlier:?}"
    );
}

#[test]
fn rs_12_no_final_state_is_lost_and_none_comes_after_a_newer_one() {
    explore(|hub| {
        let mut reader = hub.reader(true, None, None);
        let owner = thread::spawn({
            let hub = Hub::clone(&hub);
            // The second sample means the same: it is no revision.
            move || {
                let samples = [running("t", false), running("t", false), over("t")];
                let commits = work(&hub, "a", &samples);
                assert_eq!(commits.current().revision, 3);
            }
        });
        let mut last: Option<RuntimeState> = None;
        // Ends only when the final state comes: a lost ring would be a deadlock.
        while last
            .as_ref()
            .is_none_or(|state| state.turn_id.is_empty() || state.running)
        {
            for state in next(&mut reader) {
                if let Some(last) = &last {
                    follows(&state, last);
                    assert_ne!(&state, last, "told twice");
                }
                last = Some(state);
            }
        }
        owner.join().unwrap();
        assert_eq!(hub.state(SESSION), last);
    });
}

#[test]
fn rs_11_whoever_reads_meanwhile_sees_one_content_for_each_revision() {
    explore(|hub| {
        let owner = thread::spawn({
            let hub = Hub::clone(&hub);
            move || {
                work(&hub, "a", &[running("t", true), over("t")]);
            }
        });
        let list = |earlier: Option<&RuntimeStates>| {
            let now = hub.runtime_states();
            if let Some(earlier) = earlier {
                assert!(now.revision >= earlier.revision);
                assert_eq!(now == *earlier, now.revision == earlier.revision);
                if let (Some(now), Some(earlier)) = (now.sessions.first(), earlier.sessions.first())
                {
                    follows(&now.state, &earlier.state);
                }
            }
            now
        };
        let first = list(None);
        let second = list(Some(&first));
        let third = list(Some(&second));
        owner.join().unwrap();
        let end = list(Some(&third));
        assert_eq!(end.sessions[0].state.revision, 3);
    });
}

#[test]
fn rs_12_the_end_of_an_opening_never_takes_the_next_one_away() {
    explore(|hub| {
        // One opening ended by a defect; while that is being cleaned up, the session is opened anew.
        work(&hub, "a", &[running("t", true)]);
        let mut reader = hub.reader(true, None, None);
        let cleaner = thread::spawn({
            let hub = Hub::clone(&hub);
            move || hub.remove_state(SESSION, "a")
        });
        let owner = thread::spawn({
            let hub = Hub::clone(&hub);
            move || {
                work(&hub, "b", &[running("u", false)]);
            }
        });
        let mut last: Option<RuntimeState> = None;
        while last.as_ref().is_none_or(|state| state.turn_id != "u") {
            for state in next(&mut reader) {
                if let Some(last) = &last {
                    assert!(
                        !(last.runtime_epoch == "b" && state.runtime_epoch == "a"),
                        "an earlier opening came back"
                    );
                    if state.runtime_epoch == last.runtime_epoch {
                        follows(&state, last);
                    }
                }
                if state.runtime_epoch == "b" {
                    assert_ne!(state.phase, Phase::Closed);
                }
                last = Some(state);
            }
        }
        cleaner.join().unwrap();
        owner.join().unwrap();
        assert_eq!(hub.state(SESSION), last, "it is open and its own");
    });
}

#[test]
fn rs_12_behind_the_end_of_an_opening_comes_nothing_of_it() {
    explore(|hub| {
        let mut reader = hub.reader(true, None, None);
        let owner = thread::spawn({
            let hub = Hub::clone(&hub);
            move || {
                work(&hub, "a", &[running("t", true)]);
            }
        });
        let cleaner = thread::spawn({
            let hub = Hub::clone(&hub);
            move || hub.remove_state(SESSION, "a")
        });
        owner.join().unwrap();
        cleaner.join().unwrap();
        let told = next(&mut reader);
        let last = told.last().unwrap();
        match hub.state(SESSION) {
            // The end came before anything was there to end.
            Some(open) => assert_eq!(&open, last),
            None => assert_eq!((last.phase, last.running), (Phase::Closed, false)),
        }
    });
}

#[test]
fn rs_28_no_interleaving_tells_a_state_before_its_session() {
    explore(|hub| {
        let mut reader = hub.reader(false, None, None);
        let owner = thread::spawn({
            let hub = Hub::clone(&hub);
            move || {
                work(&hub, "a", &[running("t", false)]);
            }
        });
        let chooser = thread::spawn({
            let hub = Hub::clone(&hub);
            move || hub.make_current(SESSION)
        });
        let mut established = false;
        let mut told = false;
        while !told {
            let batch = {
                let mut next = pin!(reader.next());
                match next.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                    Poll::Ready(batch) => batch,
                    Poll::Pending => panic!("the model's ear waits in place"),
                }
            };
            for outgoing in batch {
                let frame: Frame = serde_json::from_str(&outgoing.data).unwrap();
                match frame.event {
                    Event::SessionChanged { .. } => established = true,
                    Event::RuntimeState { runtime_state, .. } => {
                        assert!(established, "{runtime_state:?}");
                        told = runtime_state.running;
                    }
                    _ => {}
                }
            }
        }
        owner.join().unwrap();
        chooser.join().unwrap();
    });
}
