//! What must hold in every world that can be reached.

use holdfast_domain::recovery::admission::admit;
use holdfast_domain::recovery::attempt::{Attempt, Resolution};
use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_domain::transcript::record::ResultSource;

use super::calls;
use super::persons::{ACTIONS, request, sight, situation};
use super::world::{End, Host, Start, World, id_of, index_of};

/// The first thing that does not hold.
pub(super) fn defect(world: &World) -> Option<String> {
    if let Some(words) = &world.defect {
        return Some(words.clone());
    }
    for (index, effect) in world.effects.iter().enumerate() {
        let attempt = world.session.attempt(&id_of(index));
        if effect.runs > 1 {
            return Some(format!("a{index} was executed twice"));
        }
        if effect.runs > 0 && attempt.is_none_or(|attempt| attempt.started_at.is_none()) {
            return Some(format!("a{index} was executed without a durable start"));
        }
        if effect.start == Start::Void && effect.runs > 0 {
            return Some(format!("a{index} was fenced and executed"));
        }
    }
    world
        .session
        .attempts()
        .find_map(|attempt| told(world, attempt).map(str::to_owned))
        .or_else(|| ways_out(world))
}

/// Nothing unknown is told as a success or a failure, and nothing executed as not started.
fn told(world: &World, attempt: &Attempt) -> Option<&'static str> {
    let effect = &world.effects[index_of(&attempt.identity.attempt_id)];
    let true_state = match effect.truth {
        Some(End::Success) => Some(AttemptState::Completed),
        Some(End::Failure) => Some(AttemptState::Failed),
        Some(End::Stopped | End::TimedOut) => Some(AttemptState::Interrupted),
        Some(End::Unproven) | None => None,
    };
    match attempt.state {
        AttemptState::Completed | AttemptState::Failed | AttemptState::Interrupted => {
            if true_state != Some(attempt.state) {
                return Some("an end is told that did not happen");
            }
        }
        AttemptState::NotStarted | AttemptState::Cancelled => {
            if effect.runs > 0 {
                return Some("what was executed is told as not started");
            }
        }
        AttemptState::UserConfirmed => {
            if attempt.resolution != Some(Resolution::Confirm) {
                return Some("confirmed by nobody");
            }
        }
        AttemptState::UserDismissed => {
            if attempt.resolution != Some(Resolution::Dismiss) {
                return Some("dismissed by nobody");
            }
        }
        AttemptState::Pending
        | AttemptState::Started
        | AttemptState::Running
        | AttemptState::Unknown => {}
    }
    if attempt.result.is_some() && attempt.state.is_by_person() {
        return Some("a person's word and a result both stand");
    }
    let answer = world.session.answer(&attempt.identity.call_id);
    let own = world
        .session
        .attempt_of(&attempt.identity.call_id)
        .is_some_and(|own| own.identity.attempt_id == attempt.identity.attempt_id);
    if attempt.result.is_none()
        && own
        && attempt.started_at.is_some()
        && !matches!(
            attempt.state,
            AttemptState::NotStarted | AttemptState::Cancelled
        )
        && answer
            .is_some_and(|text| !text.contains("is unknown") && !text.contains("is not known yet"))
    {
        return Some("a model is told more than is known");
    }
    None
}

/// TR-18, TR-24: a real outcome is taken up, and in every unresolved state something is admitted.
fn ways_out(world: &World) -> Option<String> {
    let host = world.host.as_ref()?;
    if !host.recovery.is_empty() {
        return None;
    }
    let sees = !host.blind;
    let fresh = sight(world, host);
    let in_flight = calls::in_flight(world);
    for attempt in world.session.attempts() {
        let id = &attempt.identity.attempt_id;
        let index = index_of(id);
        let effect = &world.effects[index];
        let owned = in_flight.contains(id);
        let has_end = effect.folder
            && matches!(
                effect.exit,
                Some(End::Success | End::Failure | End::Stopped | End::TimedOut)
            );
        if sees && has_end && !owned && attempt.result.is_none() && attempt.late.is_none() {
            return Some(format!(
                "the real outcome of {id} lies there and is not taken"
            ));
        }
        if attempt
            .result
            .as_ref()
            .is_some_and(|result| result.source == ResultSource::Synthetic)
        {
            return Some(format!("a synthetic result stands in the place of {id}'s"));
        }
        if attempt.is_unresolved(owned) && !has_way_out(world, host, &fresh, index) {
            return Some(format!("TR-24: nobody can do anything about {id}"));
        }
    }
    None
}

fn has_way_out(world: &World, host: &Host, fresh: &super::world::Person, index: usize) -> bool {
    // A running turn can be stopped, and ends.
    host.running
        || ACTIONS.iter().any(|action| {
            let asked = request(fresh, index, *action);
            admit(&asked, &situation(world, host, index, fresh)).is_ok()
        })
}
