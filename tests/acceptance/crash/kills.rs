//! C05, C39: a session whose host is killed again and again, half of the time at a named place and
//! half of the time at a seeded random moment; 12 kills, times `HOLDFAST_TEST_SCALE` (25: 300).
//!
//! Guarantees: the model below never proposes a step again unless it was told that the step did not
//! start, so every line of the ledger stands there exactly once, whenever the host died. Each kill
//! is counted by what it left on the disk, and the run fails when a window of the protocol got too
//! few: ten of 300.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use holdfast_testkit::ledger::RECORDED;
use holdfast_testkit::wait::{SOON, scaled, until};
use holdfast_testkit::{Ledger, Step};
use serde_json::{Value, json};

use super::requests::checked;
use super::stage::{Stage, calls, shell, text, write};

const KILLS: usize = 12;
const KILLS_OF_ONE_SESSION: usize = 12;
/// Of each kind; more than any session comes to.
const STEPS: usize = 400;

/// Between which two facts on the disk the host died.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Window {
    CommandReceiptToClaim,
    CommandClaimToExit,
    CommandExitToResult,
    WriteReceiptToClaim,
    WriteClaimToRename,
    WriteRenameToResult,
    /// No call was open.
    Between,
}

impl Window {
    const ALL: [Self; 7] = [
        Self::CommandReceiptToClaim,
        Self::WriteReceiptToClaim,
        Self::CommandClaimToExit,
        Self::WriteClaimToRename,
        Self::CommandExitToResult,
        Self::WriteRenameToResult,
        Self::Between,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::CommandReceiptToClaim => "command: receipt to claim",
            Self::CommandClaimToExit => "command: claim to exit",
            Self::CommandExitToResult => "command: exit to result",
            Self::WriteReceiptToClaim => "write: receipt to claim",
            Self::WriteClaimToRename => "write: claim to rename",
            Self::WriteRenameToResult => "write: rename to result",
            Self::Between => "between calls",
        }
    }

    /// The places in it where a host can be made to park; a command is held by its own gate.
    fn places(self) -> &'static [&'static str] {
        match self {
            Self::CommandReceiptToClaim => &["start_durable", "request_written"],
            Self::CommandClaimToExit => &[BEFORE_THE_LINE, BEHIND_THE_LINE],
            Self::CommandExitToResult => &["tool_ended"],
            Self::WriteReceiptToClaim => &[
                "start_durable",
                "before_temp",
                "after_create",
                "after_temp",
                "after_sync",
            ],
            Self::WriteClaimToRename => &["after_claim"],
            Self::WriteRenameToResult => &["after_rename", "after_folder_sync", "tool_ended"],
            Self::Between => &["result_durable", "submit_durable"],
        }
    }

    /// Whether the model is to propose commands, writes, or both.
    fn kind(self) -> Kind {
        match self {
            Self::CommandReceiptToClaim | Self::CommandClaimToExit | Self::CommandExitToResult => {
                Kind::Command
            }
            Self::WriteReceiptToClaim | Self::WriteClaimToRename | Self::WriteRenameToResult => {
                Kind::Write
            }
            Self::Between => Kind::Both,
        }
    }
}

/// Gates of a command: it waits while `hold-<name>` is there, and says so by `at-<name>`.
const BEFORE_THE_LINE: &str = "before";
const BEHIND_THE_LINE: &str = "behind";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Command,
    Write,
    Both,
}

/// What the model proposes; the test changes it between turns.
#[derive(Debug, Default)]
struct Wish {
    commands: AtomicBool,
    writes: AtomicBool,
}

impl Wish {
    fn set(&self, kind: Option<Kind>) {
        let is = |wanted| kind == Some(wanted) || kind == Some(Kind::Both);
        self.commands.store(is(Kind::Command), Ordering::SeqCst);
        self.writes.store(is(Kind::Write), Ordering::SeqCst);
    }
}

/// A small generator with a fixed period, so that a failing seed can be run again.
struct Moments(u64);

impl Moments {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// The kills so far, by window: at a place, at a moment.
#[derive(Debug, Default)]
struct Tally(BTreeMap<Window, (usize, usize)>);

impl Tally {
    fn report(&self) -> String {
        let mut lines = vec![format!(
            "{:<28}{:>7}{:>9}{:>7}",
            "killed", "placed", "random", "all"
        )];
        for window in Window::ALL {
            let (placed, random) = self.0.get(&window).copied().unwrap_or_default();
            let all = placed + random;
            lines.push(format!(
                "{:<28}{placed:>7}{random:>9}{all:>7}",
                window.name()
            ));
        }
        lines.join("\n")
    }

    fn of(&self, window: Window) -> usize {
        self.0
            .get(&window)
            .map_or(0, |(placed, random)| placed + random)
    }
}

#[tokio::test]
async fn c05_c39_kills_in_every_window_and_at_random_moments() {
    let kills = scaled(KILLS);
    let mut moments = Moments(20_261_130);
    let mut tally = Tally::default();
    let mut done = 0;
    while done < kills {
        let part = (kills - done).min(KILLS_OF_ONE_SESSION);
        one_session(done, part, &mut moments, &mut tally).await;
        done += part;
        println!("{done} of {kills} kills");
    }
    let report = tally.report();
    println!("{report}");
    // Every window gets its share from the named places alone; a few kills can't reach all of them.
    let wanted = if kills < KILLS {
        0
    } else {
        (kills / 30).max(1)
    };
    for window in Window::ALL
        .into_iter()
        .filter(|window| *window != Window::Between)
    {
        assert!(
            tally.of(window) >= wanted,
            "{}: too few\n{report}",
            window.name()
        );
    }
}

async fn one_session(first: usize, kills: usize, moments: &mut Moments, tally: &mut Tally) {
    let mut session = Session::begin().await;
    let mut input = "the first steps".to_owned();
    for kill in first..first + kills {
        let placed = kill % 2 == 0;
        let window = if placed {
            let turn = kill / 2;
            let window = Window::ALL[turn % Window::ALL.len()];
            let places = window.places();
            let place = places[turn / Window::ALL.len() % places.len()];
            session.die_at(window, place, &input, moments).await;
            let found = session.window();
            assert_eq!(found, window, "killed at {place}");
            window
        } else {
            session.die_at_random(&input, moments).await;
            session.window()
        };
        let counted = tally.0.entry(window).or_default();
        if placed {
            counted.0 += 1;
        } else {
            counted.1 += 1;
        }
        session.check_receipts();
        session.recover(window).await;
        session.check_truth().await;
        input = format!("continue after kill {kill}");
    }
    session.finish(&input).await;
}

/// A session, its world, and its model.
struct Session {
    stage: Stage,
    wish: Arc<Wish>,
}

impl Session {
    async fn begin() -> Self {
        let stage = Stage::new("full", vec![]).await;
        // Every second write replaces a file.
        for step in (1..STEPS).step_by(2) {
            std::fs::write(stage.in_workspace(&file_of(step)), old(step)).unwrap();
        }
        let wish = Arc::new(Wish::default());
        let session = Self { stage, wish };
        session.offer(STEPS);
        session
    }

    /// Answers of the model, each the next step that is wished for.
    fn offer(&self, count: usize) {
        for _ in 0..count {
            let (wish, ledger, log, gates) = (
                Arc::clone(&self.wish),
                self.stage.ledger.clone(),
                self.stage.log(),
                self.stage.beside(""),
            );
            self.stage
                .model
                .push_fn(move |request| next_step(request, &wish, &ledger, &log, &gates));
        }
    }

    /// Runs until the host stands at that place, and kills it there.
    async fn die_at(&mut self, window: Window, place: &str, input: &str, moments: &mut Moments) {
        self.wish.set(Some(window.kind()));
        if window == Window::CommandClaimToExit {
            let (hold, at) = self.gate(place);
            std::fs::write(hold, "").unwrap();
            self.submit(input).await;
            self.allowing(|| at.exists()).await;
            self.stage.kill();
            return;
        }
        // Not always the first that passes.
        let pass = match place {
            "submit_durable" => 1,
            _ => 1 + u32::try_from(moments.below(3)).unwrap(),
        };
        self.stage.restart_stopping_at(place, pass);
        if place == "submit_durable" {
            self.stage.submit_unheard(&json!({ "input": input }));
        } else {
            self.submit(input).await;
        }
        self.allowing(|| self.stage.has_parked()).await;
        self.stage.kill();
    }

    /// Kills somewhere in the next records, measured by the log's own growth, and a little later.
    async fn die_at_random(&mut self, input: &str, moments: &mut Moments) {
        self.wish.set(Some(Kind::Both));
        let moment = self.length() + 200 + moments.below(6000);
        self.submit(input).await;
        self.allowing(|| self.length() >= moment).await;
        for _ in 0..moments.below(30) {
            self.stage.status().await;
        }
        self.stage.kill();
    }

    async fn submit(&self, input: &str) {
        self.stage.submit(input).await;
    }

    /// Waits for a condition; what is asked on the way is allowed.
    async fn allowing(&self, mut is_so: impl FnMut() -> bool) {
        let answering = async {
            loop {
                if self.stage.status().await["runtimeState"]["pendingPrompt"] == true {
                    self.stage.allow_all_asked().await;
                }
            }
        };
        let waiting = until("the moment of the kill", 3 * SOON, || is_so().then_some(()));
        // A host that stands at its place answers nobody.
        tokio::select! {
            biased;
            () = waiting => {}
            () = answering => {}
        }
    }

    fn length(&self) -> u64 {
        std::fs::metadata(self.stage.log()).unwrap().len()
    }

    fn gate(&self, name: &str) -> (PathBuf, PathBuf) {
        (
            self.stage.beside(&format!("hold-{name}")),
            self.stage.beside(&format!("at-{name}")),
        )
    }

    /// What the dead host left: which facts are on the disk, and which not yet.
    fn window(&self) -> Window {
        let records = self.stage.records();
        let of = |kinds: &[&str]| -> HashSet<String> {
            records
                .iter()
                .filter(|(kind, _)| kinds.contains(&kind.as_str()))
                .map(|(_, payload)| text(&payload["attempt_id"]))
                .collect()
        };
        let settled = of(&["tool_result", "not_started"]);
        let open = records
            .iter()
            .filter(|(kind, _)| kind == "receipt")
            .map(|(_, payload)| payload)
            .find(|receipt| !settled.contains(&text(&receipt["identity"]["attempt_id"])));
        let Some(receipt) = open else {
            return Window::Between;
        };
        let attempt = text(&receipt["identity"]["attempt_id"]);
        let effects = self.stage.folder().join("effects").join(&attempt);
        if receipt["supervised"] == true {
            return match (
                effects.join("start").exists(),
                effects.join("exit").exists(),
            ) {
                (_, true) => Window::CommandExitToResult,
                (true, false) => Window::CommandClaimToExit,
                (false, false) => Window::CommandReceiptToClaim,
            };
        }
        let temporary = self.stage.in_workspace(&format!(".holdfast-{attempt}.tmp"));
        match (effects.join("publish").exists(), temporary.exists()) {
            (false, _) => Window::WriteReceiptToClaim,
            (true, true) => Window::WriteClaimToRename,
            (true, false) => Window::WriteRenameToResult,
        }
    }

    /// Every effect in the world had its receipt in the log first.
    fn check_receipts(&self) {
        let receipts: HashSet<String> = self
            .stage
            .records()
            .into_iter()
            .filter(|(kind, _)| kind == "receipt")
            .map(|(_, payload)| {
                let identity = &payload["identity"];
                format!(
                    "{} {}",
                    text(&payload["subject"]),
                    text(&identity["attempt_id"])
                )
            })
            .collect();
        let mut attempts = HashSet::new();
        for line in self.stage.ledger.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let [_, attempt, was] = words[..] else {
                panic!("a line of three words: {line}")
            };
            assert_eq!(was, RECORDED, "{line}");
            assert!(
                receipts.iter().any(|known| known.ends_with(attempt)),
                "{line}"
            );
            assert!(
                attempts.insert(attempt.to_owned()),
                "an attempt ran twice: {line}"
            );
        }
        for step in 0..STEPS {
            let file = file_of(step);
            if self.content(step).as_deref() == Some(&*new(step)) {
                let had = receipts
                    .iter()
                    .any(|known| known.starts_with(&format!("{file} ")));
                assert!(had, "{file} was written without a receipt");
            }
        }
    }

    fn content(&self, step: usize) -> Option<String> {
        std::fs::read_to_string(self.stage.in_workspace(&file_of(step))).ok()
    }

    /// The next host: what runs comes to its end, and nothing is left to a person.
    async fn recover(&mut self, window: Window) {
        for name in [BEFORE_THE_LINE, BEHIND_THE_LINE] {
            let (hold, at) = self.gate(name);
            let held = hold.exists();
            let _ = std::fs::remove_file(hold);
            let _ = std::fs::remove_file(at);
            assert!(!held || window == Window::CommandClaimToExit);
        }
        self.stage.restart();
        self.stage.until_no_jobs().await;
        let snapshot = self.stage.recovery().await;
        assert_eq!(snapshot["calls"], json!([]), "{}", window.name());
        assert_eq!(snapshot["statistics"]["unknown"], 0);
    }

    /// The cards against the world: what is called completed happened once, and nothing else did.
    async fn check_truth(&self) {
        let mut done: HashSet<String> = HashSet::new();
        for item in self.stage.transcript_of_all_pages().await {
            let tool = &item["tool"];
            let Some(id) = tool["id"].as_str() else {
                continue;
            };
            match tool["state"].as_str().unwrap() {
                "completed" => {
                    let step = id.split('-').next().unwrap().to_owned();
                    assert!(done.insert(step), "{id} happened twice");
                }
                "not_started" | "cancelled" | "proposed" => {}
                other => panic!("{id} is {other}: {tool}"),
            }
        }
        let lines = self.stage.ledger.lines();
        let mut seen = HashSet::new();
        for line in &lines {
            let step = line.split(' ').next().unwrap();
            assert!(
                done.contains(step),
                "{line}, and its card says that it did not happen"
            );
            assert!(seen.insert(step), "{step} happened twice");
        }
        for step in &done {
            if step.starts_with('s') {
                assert!(
                    seen.contains(step.as_str()),
                    "{step} is said to have happened"
                );
            }
        }
        for step in 0..STEPS {
            let wanted = if done.contains(&format!("w{step}")) {
                Some(new(step))
            } else {
                (step % 2 == 1).then(|| old(step))
            };
            assert_eq!(self.content(step), wanted, "w{step}");
        }
        let left: Vec<_> = std::fs::read_dir(self.stage.in_workspace(""))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .filter(|name| name.to_string_lossy().starts_with(".holdfast-"))
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }

    /// The session is usable to its end.
    async fn finish(mut self, input: &str) {
        self.wish.set(None);
        self.stage.turn(input).await;
        checked(&self.stage.model);
        let items = self.stage.transcript_of_all_pages().await;
        assert_eq!(items.last().unwrap()["text"], "all done");
        self.check_truth().await;
        self.stage.end();
    }
}

fn file_of(step: usize) -> String {
    format!("w{step}.txt")
}

fn old(step: usize) -> String {
    format!("before step {step}\n")
}

fn new(step: usize) -> String {
    format!("written by step {step}\n")
}

/// The model: the first step of the wished kind that it has not proposed, or was told not to have
/// started.
fn next_step(
    request: &Value,
    wish: &Wish,
    ledger: &Ledger,
    log: &std::path::Path,
    gates: &std::path::Path,
) -> Step {
    let mut tries: BTreeMap<String, (usize, bool)> = BTreeMap::new();
    for message in request["messages"].as_array().unwrap() {
        let id = message["tool_call_id"].as_str().unwrap_or_default();
        if let Some((step, _)) = id.split_once('-') {
            let again = did_not_start(message["content"].as_str().unwrap_or_default());
            let entry = tries.entry(step.to_owned()).or_default();
            *entry = (entry.0 + 1, again);
        }
    }
    let next = |letter: &str| {
        (0..STEPS).find_map(|step| match tries.get(&format!("{letter}{step}")) {
            None => Some((step, 0)),
            Some((count, true)) => Some((step, *count)),
            Some((_, false)) => None,
        })
    };
    let (commands, writes) = (
        wish.commands.load(Ordering::SeqCst),
        wish.writes.load(Ordering::SeqCst),
    );
    let count: usize = tries.values().map(|(count, _)| count).sum();
    if writes && (!commands || count.is_multiple_of(2)) {
        let (step, count) = next("w").unwrap();
        let id = format!("w{step}-{count}");
        return calls([write(&id, &file_of(step), &new(step))]);
    }
    if !commands {
        return Step::text("all done");
    }
    let (step, count) = next("s").unwrap();
    let effect = ledger.append_witnessed(&format!("s{step}"), log);
    let gate = |name: &str| {
        let at = |what: &str| {
            let path = gates.join(format!("{what}-{name}"));
            holdfast_testkit::ledger::quoted(&path.to_string_lossy())
        };
        let (hold, here) = (at("hold"), at("at"));
        format!("if [ -e {hold} ]; then : > {here}; while [ -e {hold} ]; do sleep 0.02; done; fi")
    };
    let command = format!(
        "{}; {effect}; {}; echo out",
        gate(BEFORE_THE_LINE),
        gate(BEHIND_THE_LINE)
    );
    calls([shell(&format!("s{step}-{count}"), &command)])
}

fn did_not_start(result: &str) -> bool {
    ["not started", "blocked: ", "never ran", "never started"]
        .iter()
        .any(|words| result.contains(words))
}

impl Stage {
    /// Allows the questions of this moment; one that is gone by then is fine.
    async fn allow_all_asked(&self) {
        let prompts = self.get("/pending-prompts").await;
        for prompt in prompts.as_array().unwrap() {
            let (status, body) = self.allow(prompt).await;
            assert!(status == 204 || body["code"] == "prompt_stale", "{body}");
        }
    }

    /// The whole transcript, oldest first.
    async fn transcript_of_all_pages(&self) -> Vec<Value> {
        let mut items = Vec::new();
        let mut before = json!(null);
        loop {
            let mut route = self.route("/transcript/page");
            if let Some(place) = before.as_u64() {
                route = format!("{route}&before={place}");
            }
            let page = self.client().get_ok(&route).await;
            items.extend(page["items"].as_array().unwrap().clone());
            before = page["before"].clone();
            if before.is_null() {
                break;
            }
        }
        items.reverse();
        items
    }
}
