//! What may happen next outside of any person's will: crashes, and the host's own work.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_domain::recovery::barrier;
use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_domain::recovery::process::{ProcessEvidence, outcome_of};
use holdfast_domain::recovery::restart::{Findings, RestartStep, plan};
use holdfast_domain::transcript::next::{Next, next};
use holdfast_domain::transcript::notes::{closing, closings, host_note};
use holdfast_domain::transcript::record::{
    AssistantMessage, AttemptChanged, CallRefused, JobStarted, LateEvidence, NotStarted,
    PromptAsked, ProposedCall, Record, ResultSource, ToolResult, TurnEnded, TurnStarted,
    UserMessage,
};
use holdfast_domain::transcript::view::{check_pairing, outbound};

use super::calls::{self, Permission};
use super::outside::{processes, reboot, step};
use super::world::{
    Effect, Executor, Host, Start, Step, Tool, World, id_of, index_of, receipt_of, stragglers,
};
use crate::log::result;

/// A move and where it leads.
pub(super) type Moves = Vec<(&'static str, World)>;

/// The world with these records durable and what follows them done; and each way in which the host
/// dies in that write: some first records are durable, and nothing follows.
pub(super) fn write(
    name: &'static str,
    world: &World,
    records: &[Record],
    then: impl FnOnce(&mut World),
) -> Moves {
    let mut moves = Moves::new();
    if world.budget.crashes > 0 {
        let mut torn = world.clone();
        for record in records {
            torn.add(record.clone());
            let mut dead = torn.clone();
            crash(&mut dead);
            moves.push(("crash in a write", dead));
        }
    }
    let mut whole = world.clone();
    for record in records {
        whole.add(record.clone());
    }
    then(&mut whole);
    moves.push((name, whole));
    moves
}

fn crash(world: &mut World) {
    world.budget.crashes -= 1;
    die(world);
}

pub(super) fn die(world: &mut World) {
    world.host = None;
    for effect in &mut world.effects {
        // A file tool is a part of the host.
        if effect.tool == Tool::File && effect.executor != Executor::Absent {
            effect.executor = Executor::Gone;
        }
    }
}

/// All of them.
pub(super) fn moves(world: &World) -> Moves {
    let mut found = Moves::new();
    for index in 0..world.effects.len() {
        processes(world, index, &mut found);
    }
    if world.budget.reboots > 0 {
        reboot(world, &mut found);
    }
    match &world.host {
        None => open(world, &mut found),
        Some(host) => {
            if world.budget.crashes > 0 {
                let mut dead = world.clone();
                crash(&mut dead);
                found.push(("crash", dead));
            }
            if host.recovery.is_empty() {
                work(world, host, &mut found);
            } else {
                recover(world, &mut found);
            }
        }
    }
    found
}

/// The host comes back: it looks at every effect folder, and plans.
fn open(world: &World, found: &mut Moves) {
    let has_ready = world
        .effects
        .iter()
        .any(|effect| effect.tool == Tool::Shell && effect.executor == Executor::Ready);
    // A supervisor that has not claimed the start may hold its lock already, or not.
    let mut ways = vec![(false, false)];
    if has_ready {
        ways.push((true, false));
    }
    if world.budget.blind > 0 {
        ways.push((false, true));
    }
    for (held, blind) in ways {
        let mut next = world.clone();
        next.epochs += 1;
        next.budget.blind -= u8::from(blind);
        let open: Vec<(usize, bool)> = next
            .session
            .attempts()
            .filter(|attempt| attempt.supervised && attempt.late.is_none())
            .filter(|attempt| !attempt.state.is_final() || attempt.state.is_by_person())
            .map(|attempt| {
                let may_fence = !attempt.state.is_by_person();
                (index_of(&attempt.identity.attempt_id), may_fence)
            })
            .collect();
        let mut processes = BTreeMap::new();
        for (index, may_fence) in open.into_iter().filter(|_| !blind) {
            let evidence = look(&mut next, index, held, may_fence);
            processes.insert(id_of(index), evidence);
        }
        let findings = Findings {
            boot_id: next.boot_id(),
            processes,
            mutating_tools: BTreeSet::from(["shell".to_owned(), "write_file".to_owned()]),
            ..Findings::default()
        };
        let steps = plan(&next.session, &findings);
        next.host = Some(Host {
            epoch: next.epochs,
            blind,
            recovery: steps.into_iter().map(Step).collect(),
            ..Host::default()
        });
        found.push((if blind { "open blind" } else { "open" }, next));
    }
}

/// As the supervisor's own look decides; a claim on an unclaimed start is taken here (TR-18).
fn look(world: &mut World, index: usize, held: bool, may_fence: bool) -> ProcessEvidence {
    let same_boot = world.effects[index].boot == world.boot;
    let no_fence = world.defects.no_fence;
    let effect = &mut world.effects[index];
    let lost = |effect: &Effect| ProcessEvidence::Lost {
        reason: "lost".to_owned(),
        stragglers: if effect.straggler {
            stragglers()
        } else {
            Vec::new()
        },
    };
    if !effect.folder {
        if !(same_boot && may_fence) {
            return ProcessEvidence::NoFolder;
        }
        effect.folder = true;
    }
    if let Some(end) = effect.exit {
        return ProcessEvidence::Exited {
            receipt: receipt_of(index, end),
            output_incomplete: false,
            alive: false,
        };
    }
    match effect.start {
        Start::Void if same_boot => ProcessEvidence::Fenced,
        Start::Void => lost(effect),
        Start::Supervisor => match effect.executor {
            Executor::Claimed | Executor::Ran => ProcessEvidence::Running { pid: 7 },
            Executor::Absent | Executor::Ready | Executor::Gone => lost(effect),
        },
        Start::Free if held && effect.executor == Executor::Ready => {
            ProcessEvidence::Running { pid: 0 }
        }
        Start::Free if !same_boot => lost(effect),
        Start::Free => {
            if !no_fence {
                effect.start = Start::Void;
            }
            ProcessEvidence::Fenced
        }
    }
}

fn recover(world: &World, found: &mut Moves) {
    let mut world = world.clone();
    let Some(Step(step)) = world
        .host
        .as_mut()
        .and_then(|host| host.recovery.pop_front())
    else {
        return;
    };
    match step {
        RestartStep::Record(record) => found.extend(write("recover", &world, &[record], |_| {})),
        RestartStep::Adopt {
            attempt_id,
            receipt,
            ..
        } => {
            let index = index_of(&attempt_id);
            let state = outcome_of(&receipt).state;
            let record = ending(&world, index, state, ResultSource::Recovered);
            found.extend(write("adopt", &world, &[record], |world| {
                world.effects[index].folder = false;
            }));
        }
        RestartStep::AdoptWrite { attempt_id, .. } => {
            let index = index_of(&attempt_id);
            let source = ResultSource::Recovered;
            let record = ending(&world, index, AttemptState::Completed, source);
            found.extend(write("adopt", &world, &[record], |_| {}));
        }
        RestartStep::Reattach { attempt_id } => {
            if let Some(host) = &mut world.host {
                host.watched.insert(index_of(&attempt_id));
            }
            found.push(("reattach", world));
        }
    }
}

/// A real result, or what is attached behind a person's word (TR-10).
fn ending(world: &World, index: usize, state: AttemptState, source: ResultSource) -> Record {
    let record = ToolResult {
        source,
        exit: world.effects[index].exit.map(|end| receipt_of(index, end)),
        ..result(&id_of(index), state, &format!("output of a{index}"))
    };
    let by_person = world
        .session
        .attempt(&id_of(index))
        .is_some_and(|attempt| attempt.state.is_by_person());
    if by_person {
        LateEvidence { result: record }.into()
    } else {
        record.into()
    }
}

fn work(world: &World, host: &Host, found: &mut Moves) {
    for index in &host.in_flight {
        launch(world, host, *index, found);
        arrival(world, *index, ResultSource::Live, found);
    }
    for index in &host.background {
        arrival(world, *index, ResultSource::Live, found);
    }
    for index in &host.watched {
        arrival(world, *index, ResultSource::Recovered, found);
    }
    if host.running && !host.cancelled && world.budget.jobs > 0 {
        for index in &host.in_flight {
            background(world, *index, found);
        }
    }
    if world.budget.stops > 0 && world.session.prompt.is_none() {
        stop(world, host, found);
    }
    if host.running {
        turn(world, host, found);
    } else if world.budget.messages > 0 {
        message(world, found);
    }
}

/// TR-05 (11), (12).
fn launch(world: &World, host: &Host, index: usize, found: &mut Moves) {
    if world.effects[index].executor != Executor::Absent {
        return;
    }
    if host.cancelled {
        let record = NotStarted {
            attempt_id: id_of(index),
            reason: "stopped before it ran".to_owned(),
        };
        found.extend(write("not started", world, &[record.into()], |world| {
            drop_attempt(world, index);
        }));
        return;
    }
    step("launch", world, index, found, |effect| {
        effect.executor = Executor::Ready;
        effect.folder = effect.tool == Tool::Shell;
    });
}

/// TR-50: a command that was started goes on, and its call is answered. It is watched first.
fn background(world: &World, index: usize, found: &mut Moves) {
    if world.effects[index].start != Start::Supervisor {
        return;
    }
    let mut watched = world.clone();
    watched.budget.jobs -= 1;
    if let Some(host) = &mut watched.host {
        host.in_flight.remove(&index);
        host.background.insert(index);
    }
    let record = JobStarted {
        attempt_id: id_of(index),
        by: JobStarted::MODEL.to_owned(),
        text: format!("started as job a{index}; its outcome is not known yet"),
    };
    found.extend(write("background", &watched, &[record.into()], |_| {}));
}

fn drop_attempt(world: &mut World, index: usize) {
    if let Some(host) = &mut world.host {
        host.in_flight.remove(&index);
        host.background.remove(&index);
        host.watched.remove(&index);
    }
}

/// What its executor says, or that it is gone.
fn arrival(world: &World, index: usize, source: ResultSource, found: &mut Moves) {
    let effect = &world.effects[index];
    let attempt_id = id_of(index);
    let unknown = |stragglers| -> Record {
        AttemptChanged {
            attempt_id: attempt_id.clone(),
            state: AttemptState::Unknown,
            reason: "its end is not known".to_owned(),
            stragglers,
        }
        .into()
    };
    let by_person = world
        .session
        .attempt(&attempt_id)
        .is_some_and(|attempt| attempt.state.is_by_person());
    let (name, record) = match (effect.tool, effect.exit) {
        (Tool::File, _) if effect.executor == Executor::Ran => (
            "result",
            Some(ending(world, index, AttemptState::Completed, source)),
        ),
        (Tool::File, _) => return,
        (Tool::Shell, Some(end)) => {
            let receipt = receipt_of(index, end);
            match outcome_of(&receipt).state {
                AttemptState::Unknown if by_person => ("unproven end", None),
                AttemptState::Unknown => ("unproven end", Some(unknown(receipt.stragglers))),
                state => ("result", Some(ending(world, index, state, source))),
            }
        }
        (Tool::Shell, None) if effect.executor != Executor::Gone => return,
        (Tool::Shell, None) if effect.start == Start::Supervisor => {
            let record = (!by_person).then(|| unknown(Vec::new()));
            ("lost", record)
        }
        // Killed before it claimed the start: the host takes it.
        (Tool::Shell, None) => {
            let record = NotStarted {
                attempt_id: attempt_id.clone(),
                reason: "it was never started".to_owned(),
            };
            let mut fenced = world.clone();
            fenced.effects[index].start = Start::Void;
            found.extend(write("fenced", &fenced, &[record.into()], |world| {
                drop_attempt(world, index);
            }));
            return;
        }
    };
    let records: Vec<Record> = record.into_iter().collect();
    found.extend(write(name, world, &records, |world| {
        drop_attempt(world, index);
        world.effects[index].folder &= name != "result";
    }));
}

fn stop(world: &World, host: &Host, found: &mut Moves) {
    let mut next = world.clone();
    next.budget.stops -= 1;
    let mut wanted = host.watched.clone();
    wanted.extend(&host.background);
    if host.running && !host.cancelled {
        if let Some(host) = &mut next.host {
            host.cancelled = true;
        }
        wanted.extend(&host.in_flight);
    }
    for index in &wanted {
        next.effects[*index].stop_wanted = true;
    }
    if !wanted.is_empty() || host.running && !host.cancelled {
        found.push(("stop", next));
    }
}

/// TR-15, TR-51: a message closes what is open, tells what was learnt, and starts a turn.
fn message(world: &World, found: &mut Moves) {
    let mut told = world.clone();
    told.budget.messages -= 1;
    let mut records = closings(&told.session);
    for record in records.clone() {
        told.add(record);
    }
    let note = host_note(&told.session);
    records.extend(note.map(Record::from));
    let turn_id = format!("t{}", world.budget.messages);
    records.push(
        UserMessage {
            turn_id: turn_id.clone(),
            text: "continue".to_owned(),
            submission_id: String::new(),
            steer_item: String::new(),
        }
        .into(),
    );
    records.push(
        TurnStarted {
            turn_id,
            continuation: false,
        }
        .into(),
    );
    let mut before = world.clone();
    before.budget.messages -= 1;
    found.extend(write("message", &before, &records, |world| {
        if let Some(host) = &mut world.host {
            host.running = true;
            host.cancelled = false;
        }
    }));
}

fn turn_id(world: &World) -> String {
    world
        .session
        .turn
        .as_ref()
        .map(|turn| turn.id.clone())
        .unwrap_or_default()
}

fn end_turn(world: &World, status: &str, found: &mut Moves) {
    let record = TurnEnded {
        turn_id: turn_id(world),
        status: status.to_owned(),
        ..TurnEnded::default()
    };
    found.extend(write("turn ends", world, &[record.into()], |world| {
        if let Some(host) = &mut world.host {
            host.running = false;
            host.cancelled = false;
        }
    }));
}

fn turn(world: &World, host: &Host, found: &mut Moves) {
    if world.session.prompt.is_some() {
        return;
    }
    if host.cancelled {
        if host.in_flight.is_empty() {
            end_turn(world, "cancelled", found);
        }
        return;
    }
    let running: BTreeSet<String> = host
        .in_flight
        .iter()
        .filter_map(|index| world.session.attempt(&id_of(*index)))
        .map(|attempt| attempt.identity.call_id.clone())
        .collect();
    match next(&world.session, &running, |_| false) {
        Next::Wait => {}
        Next::Model => reply(world, found),
        Next::Calls(ids) => {
            for id in ids {
                take_up(world, &id, &[], found);
            }
        }
        Next::Synthetic(id) => {
            let record = world
                .session
                .call(&id)
                .map(|call| closing(&world.session, call));
            let records: Vec<Record> = record.into_iter().collect();
            found.extend(write("told unknown", world, &records, |_| {}));
        }
        Next::Completed | Next::TooManySteps => end_turn(world, "completed", found),
    }
}

/// The model is asked: it says that it is done, or calls one of the tools, always in the same words.
fn reply(world: &World, found: &mut Moves) {
    let mut world = world.clone();
    if let Err(error) = check_pairing(&outbound(&world.session)) {
        world.fail(format!("TR-43: {error}"));
    }
    let step = world.session.turn.as_ref().map_or(1, |turn| turn.steps + 1);
    let message = |calls| AssistantMessage {
        turn_id: turn_id(&world),
        step,
        text: "…".to_owned(),
        calls,
        ..AssistantMessage::default()
    };
    found.extend(write(
        "reply",
        &world,
        &[message(Vec::new()).into()],
        |_| {},
    ));
    if world.budget.calls == 0 {
        return;
    }
    for tool in [Tool::Shell, Tool::File] {
        let mut next = world.clone();
        next.budget.calls -= 1;
        let call_id = format!("c{}", next.budget.calls);
        let proposed = ProposedCall {
            call_id: call_id.clone(),
            provider_id: String::new(),
            name: tool.name().to_owned(),
            arguments: "{}".to_owned(),
        };
        take_up(&next, &call_id, &[message(vec![proposed]).into()], found);
    }
}

/// TR-05: barrier, repeat guard, records; `before` are stored in the same write.
fn take_up(world: &World, call_id: &str, before: &[Record], found: &mut Moves) {
    let mut seen = world.clone();
    for record in before {
        seen.add(record.clone());
    }
    let Some(tool) = seen
        .session
        .call(call_id)
        .map(|call| Tool::of(&call.proposed.name))
    else {
        return;
    };
    let in_flight = calls::in_flight(&seen);
    let blocking = barrier::refuses(seen.session.attempts(), &in_flight, None);
    let mut records = before.to_vec();
    if let Some(blocking) = blocking {
        records.push(
            CallRefused {
                turn_id: turn_id(&seen),
                call_id: call_id.to_owned(),
                code: "recovery_required".to_owned(),
                text: barrier::refusal_text(blocking),
            }
            .into(),
        );
        found.extend(write("blocked", world, &records, |_| {}));
        return;
    }
    let continuation = seen
        .session
        .turn
        .as_ref()
        .is_some_and(|turn| turn.continuation);
    let earlier = calls::earlier(&seen, tool).filter(|_| !world.defects.no_guard);
    if earlier.is_some() || continuation {
        let repeat = earlier.is_some();
        records.push(
            PromptAsked {
                prompt_id: format!("p-{call_id}"),
                prompt: if repeat { "repeat" } else { "approval" }.to_owned(),
                turn_id: turn_id(&seen),
                call_id: call_id.to_owned(),
                tool: tool.name().to_owned(),
                generation: 1,
                earlier,
                ..PromptAsked::default()
            }
            .into(),
        );
        let name = if repeat { "asked to repeat" } else { "asked" };
        found.extend(write(name, world, &records, |_| {}));
        return;
    }
    let mut planned = world.clone();
    let index = calls::plan_start(
        &mut planned,
        &seen,
        tool,
        call_id,
        Permission::Ordinary,
        &mut records,
    );
    found.extend(write("dispatch", &planned, &records, |world| {
        calls::own(world, index);
    }));
}
