//! What persons may do: look, act on an attempt, answer a question. Each acts on what it last saw.

use std::hash::{Hash, Hasher};

use holdfast_domain::recovery::admission::{Action, ActionRequest, Refusal, Situation, admit};
use holdfast_domain::recovery::attempt::{Evidence, Inspection, InspectionState, Resolution};
use holdfast_domain::recovery::barrier;
use holdfast_domain::transcript::record::{
    CallRefused, Inspected, PromptAnswered, Record, Resolved, TurnStarted,
};

use super::calls::{self, Permission};
use super::moves::{Moves, write};
use super::world::{Host, Person, Tool, World, id_of, index_of};

pub(super) const ACTIONS: [Action; 5] = [
    Action::Inspect,
    Action::Confirm,
    Action::Reject,
    Action::Retry,
    Action::Dismiss,
];

const PATH: &str = "session-id:model";

/// Admitted actions, looks and answers; and what was refused.
pub(super) fn moves(world: &World, refusals: &mut Vec<Refusal>) -> Moves {
    let mut found = Moves::new();
    let Some(host) = world.host.as_ref().filter(|host| host.recovery.is_empty()) else {
        return found;
    };
    let fresh = sight(world, host);
    let knows_nothing = world.session.attempts().next().is_none();
    for person in 0..world.persons.len() {
        if knows_nothing {
            break;
        }
        if world.budget.looks > 0 && world.persons[person] != fresh {
            let mut next = world.clone();
            next.budget.looks -= 1;
            next.persons[person] = fresh.clone();
            found.push(("look", next));
        }
        if world.budget.actions == 0 {
            continue;
        }
        let known: Vec<usize> = world
            .session
            .attempts()
            .map(|attempt| index_of(&attempt.identity.attempt_id))
            .collect();
        for index in known {
            for action in ACTIONS {
                let asked = request(&world.persons[person], index, action);
                match admit(&asked, &situation(world, host, index, &fresh)) {
                    Ok(()) => act(world, person, index, &asked, &mut found),
                    Err(refusal) => refusals.push(refusal),
                }
            }
        }
    }
    if world.session.prompt.is_some() && world.budget.answers > 0 {
        answer(world, host, &mut found);
    }
    found
}

/// What a person sees now.
pub(super) fn sight(world: &World, host: &Host) -> Person {
    let in_flight = calls::in_flight(world);
    let open = barrier::unresolved(world.session.attempts(), &in_flight);
    let mut hasher = std::hash::DefaultHasher::new();
    for attempt in &open {
        let inspection = attempt.inspection.as_ref().map(|i| &i.inspection_id);
        (&attempt.identity.attempt_id, attempt.state, inspection).hash(&mut hasher);
        attempt
            .resolution
            .map(|resolution| resolution as u8)
            .hash(&mut hasher);
    }
    Person {
        epoch: format!("e{}", host.epoch),
        revision: format!("{:x}", hasher.finish()),
        inspections: open
            .iter()
            .filter_map(|attempt| {
                let id = attempt.inspection.as_ref()?.inspection_id.clone();
                Some((index_of(&attempt.identity.attempt_id), id))
            })
            .collect(),
    }
}

pub(super) fn request(person: &Person, index: usize, action: Action) -> ActionRequest {
    ActionRequest {
        session_path: PATH.to_owned(),
        runtime_epoch: person.epoch.clone(),
        revision: person.revision.clone(),
        attempt_id: id_of(index),
        inspection_id: person.inspections.get(&index).cloned().unwrap_or_default(),
        action,
    }
}

pub(super) fn situation<'a>(
    world: &'a World,
    host: &Host,
    index: usize,
    fresh: &'a Person,
) -> Situation<'a> {
    let attempt = world.session.attempt(&id_of(index));
    let straggles = attempt.is_some_and(|attempt| !attempt.stragglers.is_empty())
        && world.effects[index].straggler;
    Situation {
        closed: false,
        switching: false,
        turn_running: host.running,
        session_path: PATH,
        runtime_epoch: &fresh.epoch,
        revision: &fresh.revision,
        attempt,
        executor_alive: calls::in_flight(world).contains(&id_of(index)) || straggles,
        retry_enabled: true,
    }
}

fn act(world: &World, person: usize, index: usize, asked: &ActionRequest, found: &mut Moves) {
    let mut before = world.clone();
    before.budget.actions -= 1;
    let resolve = |resolution| -> Record {
        Resolved {
            attempt_id: id_of(index),
            resolution,
            inspection_id: asked.inspection_id.clone(),
            source: "test".to_owned(),
        }
        .into()
    };
    let (name, record) = match asked.action {
        Action::Inspect => ("inspect", inspect(world, index)),
        Action::Confirm => ("confirm", resolve(Resolution::Confirm)),
        Action::Reject => ("reject", resolve(Resolution::Reject)),
        Action::Dismiss => ("dismiss", resolve(Resolution::Dismiss)),
        Action::Retry => return retry(&before, index, found),
    };
    found.extend(write(name, &before, &[record], |world| {
        if let Some(host) = &world.host {
            world.persons[person] = sight(world, host);
        }
    }));
}

/// A file tool can prove that the file is as it was before; a command proves nothing (TR-37).
fn inspect(world: &World, index: usize) -> Record {
    let effect = &world.effects[index];
    let state = match (effect.tool, effect.runs) {
        (Tool::Shell, _) => InspectionState::Unknown,
        (Tool::File, 0) => InspectionState::AbsentFenced,
        (Tool::File, _) => InspectionState::PostconditionSatisfied,
    };
    Inspected {
        attempt_id: id_of(index),
        inspection: Inspection {
            inspection_id: format!("i{}", world.seq),
            state,
            evidence: Evidence::None,
            summary: String::new(),
        },
    }
    .into()
}

/// TR-36: absent and fenced, proven again now.
fn retry(world: &World, index: usize, found: &mut Moves) {
    let latest = world
        .session
        .attempt(&id_of(index))
        .and_then(|attempt| attempt.inspection.as_ref())
        .map(|inspection| inspection.state);
    let effect = &world.effects[index];
    if latest != Some(InspectionState::AbsentFenced)
        || effect.tool == Tool::Shell
        || effect.runs > 0
    {
        return;
    }
    let blocked = barrier::refuses(
        world.session.attempts(),
        &calls::in_flight(world),
        Some(&id_of(index)),
    );
    if blocked.is_some() {
        return;
    }
    let mut planned = world.clone();
    let mut records = Vec::new();
    let started = calls::plan_start(
        &mut planned,
        world,
        effect.tool,
        &format!("retry_{index}"),
        Permission::Retry(index),
        &mut records,
    );
    found.extend(write("retry", &planned, &records, |world| {
        calls::own(world, started);
    }));
}

/// TR-51: everything is checked again before an allowed call starts.
fn answer(world: &World, host: &Host, found: &mut Moves) {
    let Some(prompt) = world.session.prompt.clone() else {
        return;
    };
    let mut before = world.clone();
    before.budget.answers -= 1;
    let answered = |allow| -> Record {
        PromptAnswered {
            prompt_id: prompt.prompt_id.clone(),
            generation: prompt.generation,
            allow,
            scope: "once".to_owned(),
            reason: String::new(),
        }
        .into()
    };
    let refused = |code: &str, text: &str| -> Record {
        CallRefused {
            turn_id: prompt.turn_id.clone(),
            call_id: prompt.call_id.clone(),
            code: code.to_owned(),
            text: text.to_owned(),
        }
        .into()
    };
    let denial = [answered(false), refused("denied", "not allowed")];
    found.extend(write("deny", &before, &denial, |_| {}));
    let mut records = Vec::new();
    if !host.running {
        records.push(
            TurnStarted {
                turn_id: prompt.turn_id.clone(),
                continuation: true,
            }
            .into(),
        );
    }
    records.push(answered(true));
    let begin = |world: &mut World| {
        if let Some(host) = &mut world.host {
            host.running = true;
        }
    };
    let blocking = barrier::refuses(world.session.attempts(), &calls::in_flight(world), None);
    if let Some(blocking) = blocking {
        records.push(refused(
            "recovery_required",
            &barrier::refusal_text(blocking),
        ));
        found.extend(write("blocked", &before, &records, begin));
        return;
    }
    let tool = Tool::of(&prompt.tool);
    let earlier = calls::earlier(world, tool);
    if earlier != prompt.earlier {
        // What was asked is not what it would be now: asked again by the host, not modelled here.
        return;
    }
    let permission = if earlier.is_some() {
        Permission::Repeat
    } else {
        Permission::Ordinary
    };
    let mut planned = before.clone();
    let index = calls::plan_start(
        &mut planned,
        world,
        tool,
        &prompt.call_id,
        permission,
        &mut records,
    );
    found.extend(write("allow", &planned, &records, |world| {
        begin(world);
        calls::own(world, index);
    }));
}
