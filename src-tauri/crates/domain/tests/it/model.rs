//! The state machine of an attempt explored: every interleaving of host, supervisor, crash, power
//! loss and two persons, to the depth of a budget. The worlds call the crate's own fold, plan,
//! admission, barrier, notes and turn; only the outside is modelled. Hosts follow one another, each
//! with an epoch of its own: that no two hold a session at once is the lock's work, and is tested
//! with real processes.
//!
//! Each test takes one slice of what may happen, since the slices' product is out of reach; together
//! they take every pair of things that can interfere. `HOLDFAST_TEST_SCALE` above 1 widens them.

mod calls;
mod checks;
mod moves;
mod outside;
mod persons;
mod world;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use holdfast_domain::recovery::admission::Refusal;

use self::world::{Budget, Defects, Start, World};

const NONE: Budget = Budget {
    messages: 1,
    calls: 1,
    crashes: 0,
    reboots: 0,
    losses: 0,
    jobs: 0,
    blind: 0,
    timeouts: 0,
    stops: 0,
    unproven: 0,
    looks: 0,
    actions: 0,
    answers: 0,
};

/// What a search saw.
#[derive(Debug, Default)]
struct Seen {
    worlds: usize,
    moves: BTreeMap<&'static str, usize>,
    states: BTreeSet<&'static str>,
    refusals: BTreeSet<&'static str>,
    starts: BTreeSet<&'static str>,
    defect: Option<(String, Vec<&'static str>)>,
}

/// Breadth first, so that a defect is told with a shortest way to it.
fn search(budget: Budget, defects: Defects) -> Seen {
    let mut seen = Seen::default();
    let first = World::new(budget, defects);
    let mut known: HashMap<u128, (u128, &'static str)> = HashMap::new();
    known.insert(first.key(), (0, "start"));
    let mut queue = VecDeque::from([first]);
    let mut refusals: Vec<Refusal> = Vec::new();
    while let Some(world) = queue.pop_front() {
        seen.worlds += 1;
        for attempt in world.session.attempts() {
            seen.states.insert(attempt.state.as_str());
        }
        for effect in &world.effects {
            match effect.start {
                Start::Free => {}
                Start::Supervisor => {
                    seen.starts.insert("supervisor");
                }
                Start::Void => {
                    seen.starts.insert("void");
                }
            }
        }
        if let Some(words) = checks::defect(&world) {
            seen.defect = Some((words, way_to(world.key(), &known)));
            return seen;
        }
        let mut found = moves::moves(&world);
        found.extend(persons::moves(&world, &mut refusals));
        seen.refusals.extend(refusals.drain(..).map(Refusal::code));
        let here = world.key();
        for (name, next) in found {
            *seen.moves.entry(name).or_default() += 1;
            if let std::collections::hash_map::Entry::Vacant(place) = known.entry(next.key()) {
                place.insert((here, name));
                queue.push_back(next);
            }
        }
    }
    seen
}

fn way_to(mut key: u128, known: &HashMap<u128, (u128, &'static str)>) -> Vec<&'static str> {
    let mut way = Vec::new();
    while let Some((before, name)) = known.get(&key) {
        way.push(*name);
        if *name == "start" {
            break;
        }
        key = *before;
    }
    way.reverse();
    way
}

fn scale() -> f64 {
    std::env::var("HOLDFAST_TEST_SCALE")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1.0)
}

/// Nothing is wrong in any world, and all of these happened.
fn sound(name: &str, budget: Budget, expected: &[&str]) -> Seen {
    let seen = search(budget, Defects::default());
    println!(
        "{name}: {} worlds, {} kinds of moves, states {:?}, refusals {:?}",
        seen.worlds,
        seen.moves.len(),
        seen.states,
        seen.refusals
    );
    assert_eq!(seen.defect, None, "{name}");
    for word in expected {
        assert!(
            seen.moves.contains_key(word),
            "{name}: {word:?} never happened: {:?}",
            seen.moves
        );
    }
    seen
}

/// `few` by default, `many` when the scale is above 1.
fn either(few: u8, many: u8) -> u8 {
    if scale() > 1.0 { many } else { few }
}

#[test]
fn tr_16_nothing_runs_twice_over_crashes_and_a_continued_turn() {
    let seen = sound(
        "crashes",
        Budget {
            messages: 2,
            calls: 2,
            crashes: either(2, 3),
            losses: either(0, 1),
            answers: either(1, 2),
            ..NONE
        },
        &[
            "crash",
            "crash in a write",
            "claim",
            "exec",
            "exit",
            "launch",
            "open",
            "recover",
            "adopt",
            "reattach",
            "result",
            "asked to repeat",
            "allow",
            "deny",
            "publish",
            "blocked",
        ],
    );
    assert_eq!(seen.starts, BTreeSet::from(["supervisor", "void"]));
}

#[test]
fn tr_11_stop_and_timeout_with_and_without_a_proven_end() {
    let seen = sound(
        "stops",
        Budget {
            messages: 2,
            calls: 2,
            crashes: 1,
            stops: either(1, 2),
            unproven: 1,
            timeouts: 1,
            looks: 1,
            actions: 1,
            answers: either(0, 1),
            ..NONE
        },
        &[
            "stop",
            "unproven end",
            "straggler ends",
            "not started",
            "dismiss",
            "inspect",
            "asked to repeat",
        ],
    );
    assert!(seen.states.contains("interrupted"), "{:?}", seen.states);
    assert!(
        seen.refusals.contains("executor_alive"),
        "{:?}",
        seen.refusals
    );
}

#[test]
fn tr_50_a_command_in_the_background_over_crashes_stops_and_losses() {
    let seen = sound(
        "jobs",
        Budget {
            messages: 2,
            calls: 2,
            crashes: 1,
            jobs: either(1, 2),
            losses: either(0, 1),
            stops: either(0, 1),
            answers: 1,
            ..NONE
        },
        &[
            "background",
            "result",
            "reattach",
            "adopt",
            "asked to repeat",
            "dispatch",
            "message",
        ],
    );
    assert!(seen.states.contains("running"), "{:?}", seen.states);
}

#[test]
fn tr_50_a_lost_or_unstoppable_job_holds_the_barrier() {
    let seen = sound(
        "ends of jobs",
        Budget {
            messages: either(1, 2),
            calls: 2,
            jobs: 1,
            losses: 1,
            stops: 1,
            unproven: 1,
            looks: 1,
            actions: 1,
            ..NONE
        },
        &["background", "lost", "unproven end", "blocked", "dismiss"],
    );
    assert!(seen.states.contains("unknown"), "{:?}", seen.states);
}

#[test]
fn tr_14_power_loss_makes_unknown_and_never_not_started() {
    sound(
        "power",
        Budget {
            messages: 2,
            crashes: either(1, 2),
            reboots: either(1, 2),
            calls: either(1, 2),
            ..NONE
        },
        &["reboot", "receipt synced", "open", "recover", "adopt"],
    );
}

#[test]
fn tr_38_two_persons_resolve_at_most_once() {
    let seen = sound(
        "persons",
        Budget {
            messages: either(1, 2),
            crashes: 1,
            losses: 1,
            looks: 3,
            actions: either(3, 4),
            ..NONE
        },
        &[
            "look",
            "inspect",
            "confirm",
            "reject",
            "dismiss",
            "lost",
            "told unknown",
        ],
    );
    for word in ["user_confirmed", "user_dismissed", "unknown"] {
        assert!(seen.states.contains(word), "{word}: {:?}", seen.states);
    }
    for code in [
        "snapshot_changed",
        "attempt_resolved",
        "not_inspected",
        "turn_running",
    ] {
        assert!(seen.refusals.contains(code), "{code}: {:?}", seen.refusals);
    }
}

#[test]
fn tr_36_a_retry_behind_a_fence_over_crashes() {
    sound(
        "retries",
        Budget {
            crashes: either(2, 3),
            looks: 2,
            actions: either(3, 4),
            messages: either(1, 2),
            ..NONE
        },
        &["retry", "inspect", "publish", "crash in a write"],
    );
}

/// TR-10: what could not be looked at at one opening is found at a later one, and goes to its
/// attempt, or behind a person's word.
#[test]
fn tr_10_a_real_result_that_comes_later_is_never_lost() {
    sound(
        "late",
        Budget {
            messages: 2,
            crashes: 2,
            blind: 1,
            looks: 1,
            actions: 1,
            answers: either(0, 1),
            calls: either(1, 2),
            ..NONE
        },
        &["open blind", "adopt", "dismiss", "message"],
    );
}

/// What the search finds when a rule is taken away; else its silence would prove nothing.
#[test]
fn the_search_finds_a_missing_rule() {
    let find = |budget: Budget, defects: Defects| {
        let (words, way) = search(budget, defects).defect.unwrap();
        println!("{words}: {}", way.join(", "));
        words
    };
    let crashes = Budget {
        messages: 2,
        calls: 2,
        crashes: 1,
        answers: 1,
        ..NONE
    };
    let no_fence = Defects {
        no_fence: true,
        ..Defects::default()
    };
    let words = find(crashes, no_fence);
    assert!(words.contains("told as not started"), "{words}");
    let late_receipt = Defects {
        late_receipt: true,
        ..Defects::default()
    };
    let words = find(
        Budget {
            calls: 1,
            ..crashes
        },
        late_receipt,
    );
    // The log does not know of the execution, so the same call is taken up once more.
    assert!(words.contains("a second time"), "{words}");
    let no_guard = Defects {
        no_guard: true,
        ..Defects::default()
    };
    let words = find(crashes, no_guard);
    assert!(words.contains("a second time"), "{words}");
}
