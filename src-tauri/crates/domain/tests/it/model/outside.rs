//! What happens outside of the host: supervisors and their commands, and power loss.

use super::moves::{Moves, die};
use super::world::{Effect, End, Executor, Start, Tool, World};

pub(super) fn step(
    name: &'static str,
    world: &World,
    index: usize,
    found: &mut Moves,
    change: impl FnOnce(&mut Effect),
) {
    let mut next = world.clone();
    change(&mut next.effects[index]);
    found.push((name, next));
}

/// The supervisor's steps, and its loss; a file's publication.
pub(super) fn processes(world: &World, index: usize, found: &mut Moves) {
    let effect = &world.effects[index];
    if effect.straggler {
        step("straggler ends", world, index, found, |effect| {
            effect.straggler = false;
        });
    }
    if effect.exit.is_some() && !effect.synced && world.budget.reboots > 0 {
        step("receipt synced", world, index, found, |effect| {
            effect.synced = true;
        });
    }
    let alive = matches!(
        effect.executor,
        Executor::Ready | Executor::Claimed | Executor::Ran
    );
    if !alive {
        return;
    }
    if effect.tool == Tool::File {
        if effect.executor == Executor::Ready {
            step("publish", world, index, found, |effect| {
                effect.runs += 1;
                effect.executor = Executor::Ran;
                effect.truth = Some(End::Success);
            });
        }
        return;
    }
    match effect.executor {
        Executor::Ready => step("claim", world, index, found, |effect| {
            if effect.start == Start::Free {
                effect.start = Start::Supervisor;
                effect.executor = Executor::Claimed;
            } else {
                effect.executor = Executor::Gone;
            }
        }),
        Executor::Claimed => step("exec", world, index, found, |effect| {
            effect.runs += 1;
            effect.executor = Executor::Ran;
        }),
        Executor::Ran => {
            let ends: &[End] = match (effect.stop_wanted, world.budget.unproven) {
                (false, _) if index == 0 && world.budget.timeouts > 0 => {
                    &[End::Success, End::Failure, End::TimedOut]
                }
                (false, _) if index == 0 => &[End::Success, End::Failure],
                (false, _) => &[End::Success],
                (true, 0) => &[End::Success, End::Stopped],
                (true, _) => &[End::Success, End::Stopped, End::Unproven],
            };
            for end in ends {
                let mut next = world.clone();
                let effect = &mut next.effects[index];
                effect.exit = Some(*end);
                effect.truth = Some(*end);
                effect.executor = Executor::Gone;
                if *end == End::TimedOut {
                    next.budget.timeouts -= 1;
                }
                let effect = &mut next.effects[index];
                if *end == End::Unproven {
                    effect.straggler = true;
                    next.budget.unproven -= 1;
                }
                found.push(("exit", next));
            }
        }
        Executor::Absent | Executor::Gone => {}
    }
    if world.budget.losses > 0 {
        let mut next = world.clone();
        next.budget.losses -= 1;
        next.effects[index].executor = Executor::Gone;
        found.push(("supervisor killed", next));
    }
}

/// Power loss: nobody is left, and of what was not synced all, the claims, or everything is lost.
pub(super) fn reboot(world: &World, found: &mut Moves) {
    for lost in 0..3 {
        let mut next = world.clone();
        next.budget.reboots -= 1;
        next.boot += 1;
        die(&mut next);
        for effect in &mut next.effects {
            if effect.executor != Executor::Absent {
                effect.executor = Executor::Gone;
            }
            effect.straggler = false;
            if !effect.synced && lost > 0 {
                effect.start = Start::Free;
                effect.exit = None;
                effect.folder &= lost == 1;
            }
        }
        found.push(("reboot", next));
    }
}
