//! A call that is about to start: its records, and the check that nothing is executed a second time
//! without a person's word.

use holdfast_domain::recovery::barrier::InFlight;
use holdfast_domain::recovery::identity::Identity;
use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_domain::recovery::repeat::{self, Proposal};
use holdfast_domain::transcript::record::{Receipt, Record, ResultSource, Superseded, ToolStarted};

use super::world::{Effect, Executor, Start, Tool, World, id_of, index_of};
use crate::log::SESSION;

/// Why a call may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Permission {
    /// The mode allows it.
    Ordinary,
    /// A person was shown that it repeats an earlier effect, and allowed it.
    Repeat,
    /// A person had this attempt run again, behind a fence.
    Retry(usize),
}

/// Attempts that the host owns now.
pub(super) fn in_flight(world: &World) -> InFlight {
    world
        .host
        .iter()
        .flat_map(|host| {
            let waited_for = host.in_flight.iter();
            waited_for.chain(&host.background).chain(&host.watched)
        })
        .map(|index| id_of(*index))
        .collect()
}

/// TR-46: the attempt that a call of this tool would repeat.
pub(super) fn earlier(world: &World, tool: Tool) -> Option<String> {
    let effect = identity(tool, "", "").effect();
    let proposal = Proposal {
        effect,
        shell: tool == Tool::Shell,
    };
    repeat::earlier(&world.session, &in_flight(world), &proposal)
        .map(|earlier| earlier.attempt.identity.attempt_id.clone())
}

/// All calls of a tool have the same arguments, so they are the same effect.
fn identity(tool: Tool, call_id: &str, attempt_id: &str) -> Identity {
    Identity {
        session_id: SESSION.to_owned(),
        turn_id: String::new(),
        step: 1,
        call_id: call_id.to_owned(),
        canonical_tool: tool.name().to_owned(),
        argument_digest: "d".repeat(64),
        attempt_id: attempt_id.to_owned(),
        resource_scope: format!("session:{SESSION}"),
    }
}

/// Adds the records of a start, and its place among the effects.
pub(super) fn plan_start(
    world: &mut World,
    seen: &World,
    tool: Tool,
    call_id: &str,
    permission: Permission,
    records: &mut Vec<Record>,
) -> usize {
    check(world, tool, permission);
    let index = world.effects.len();
    let turn = seen.session.turn.as_ref();
    let identity = Identity {
        turn_id: turn.map(|turn| turn.id.clone()).unwrap_or_default(),
        step: turn.map_or(1, |turn| turn.steps),
        ..identity(tool, call_id, &id_of(index))
    };
    let original = match permission {
        Permission::Retry(original) => world.session.attempt(&id_of(original)),
        Permission::Ordinary | Permission::Repeat => None,
    };
    let idempotency_key = original.map_or_else(
        || identity.idempotency_key(),
        |original| original.idempotency_key.clone(),
    );
    let superseded = original.map(|original| Superseded {
        attempt_id: original.identity.attempt_id.clone(),
        by: id_of(index),
    });
    world.effects.push(Effect {
        tool,
        folder: false,
        executor: Executor::Absent,
        start: Start::Free,
        exit: None,
        synced: false,
        stop_wanted: false,
        straggler: false,
        boot: world.boot,
        runs: 0,
        truth: None,
    });
    if permission != Permission::Ordinary {
        world.allowed += 1;
    }
    if world.defects.late_receipt {
        return index;
    }
    records.push(
        Receipt {
            identity,
            read_only: false,
            idempotency_key,
            subject: "S".to_owned(),
            file: None,
            supervised: tool == Tool::Shell,
        }
        .into(),
    );
    records.extend(superseded.map(Record::from));
    records.push(
        ToolStarted {
            attempt_id: id_of(index),
            boot_id: world.boot_id(),
        }
        .into(),
    );
    index
}

/// From here on the host owns the attempt.
pub(super) fn own(world: &mut World, index: usize) {
    if let Some(host) = &mut world.host {
        host.in_flight.insert(index);
        host.running = true;
    }
}

/// The truth is asked, not the log: an earlier execution of the same effect whose end the model was
/// not told as a live result may be repeated only by a person's word.
fn check(world: &mut World, tool: Tool, permission: Permission) {
    if permission == Permission::Repeat {
        return;
    }
    let retried = match permission {
        Permission::Retry(original) => Some(original),
        Permission::Ordinary | Permission::Repeat => None,
    };
    for (index, effect) in world.effects.clone().iter().enumerate() {
        if effect.tool != tool {
            continue;
        }
        let may_still_run = effect.start != Start::Void
            && matches!(
                effect.executor,
                Executor::Ready | Executor::Claimed | Executor::Ran
            );
        let attempt = world.session.attempt(&id_of(index));
        let is_told = attempt
            .and_then(|attempt| attempt.result.as_ref())
            .is_some_and(|result| {
                result.source == ResultSource::Live && result.state != AttemptState::Interrupted
            });
        // It was told that this very command runs, by the host that runs it.
        let is_told = is_told
            || attempt.is_some_and(|attempt| {
                attempt.background.is_some() && attempt.state.is_open() && !attempt.found_open
            });
        if (effect.runs > 0 || may_still_run) && (retried == Some(index) || !is_told) {
            let words = format!("a{index} is executed a second time without a person's word");
            // What a later allowed attempt of the same effect has settled is settled.
            let settled = world.session.attempts().any(|later| {
                index_of(&later.identity.attempt_id) > index
                    && later.identity.canonical_tool == tool.name()
                    && later.result.as_ref().is_some_and(|result| {
                        result.source == ResultSource::Live
                            && result.state != AttemptState::Interrupted
                    })
            });
            if retried == Some(index) || !settled {
                world.fail(words);
            }
        }
    }
}
