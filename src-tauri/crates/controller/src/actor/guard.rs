//! The repeat guard of a session: which earlier attempt a call may repeat, asked before the start
//! and again after the answer (TR-46, TR-51).

use holdfast_domain::recovery::identity::{Triple, resource_scope};
use holdfast_domain::recovery::repeat::{self, Earlier, Proposal};
use holdfast_domain::transcript::record::PromptAsked;
use holdfast_tools::{Prepared, ToolKind};

use super::{Actor, views};

/// Why a call is asked about as a repetition.
pub(super) struct Repeat {
    /// The earlier attempt.
    pub(super) attempt_id: String,
    /// The word for its state now.
    pub(super) state: String,
    /// Why it is asked, for the person.
    pub(super) why: String,
    /// The result where nobody can be asked.
    pub(super) refusal: String,
}

impl Repeat {
    /// The person was shown this attempt in this state.
    pub(super) fn is_as_shown(&self, asked: &PromptAsked) -> bool {
        asked.prompt == PromptAsked::REPEAT
            && asked.earlier.as_ref() == Some(&self.attempt_id)
            && asked.earlier_state == self.state
    }
}

impl Actor {
    /// TR-46: what a call with an effect may repeat; no mode and no grant goes around it.
    pub(super) fn repeats(&self, prepared: &Prepared) -> Option<Repeat> {
        if prepared.read_only {
            return None;
        }
        // Without a scope there is no effect to compare; such a call is never started.
        let scope = resource_scope(&self.id, prepared.resource_scope.as_deref()).ok()?;
        let effect = Triple {
            canonical_tool: prepared.canonical_tool.clone(),
            argument_digest: prepared.argument_digest.clone(),
            resource_scope: scope,
        };
        let proposal = Proposal {
            effect: effect.within(&self.id),
            shell: prepared.kind == ToolKind::Shell,
        };
        let earlier = repeat::earlier(&self.store.session, &self.in_flight(), &proposal)?;
        Some(self.repeat_of(&earlier))
    }

    fn repeat_of(&self, earlier: &Earlier<'_>) -> Repeat {
        let in_flight = self.in_flight();
        Repeat {
            attempt_id: earlier.attempt.identity.attempt_id.clone(),
            state: views::attempt_word(earlier.attempt, &in_flight).to_owned(),
            why: repeat::question(earlier, &in_flight),
            refusal: repeat::refusal_text(earlier, &in_flight),
        }
    }

    /// The earlier attempt of an open question has come to another state: asked anew, so that
    /// nobody answers what is no longer so.
    pub(super) async fn refresh_repeat(&mut self) {
        let Some(asked) = self.store.session.prompt.clone() else {
            return;
        };
        let found = asked
            .earlier
            .as_ref()
            .and_then(|id| self.store.session.attempt(id));
        let Some(attempt) = found else {
            return;
        };
        let repeat = self.repeat_of(&Earlier {
            attempt,
            same_call: views::is_same_call(&asked, attempt),
        });
        if repeat.is_as_shown(&asked) {
            return;
        }
        let again = PromptAsked {
            generation: asked.generation + 1,
            reason: repeat.why,
            earlier_state: repeat.state,
            ..asked
        };
        // Where it can't be stored the older question stays, and its answer is checked all the same.
        if let Ok(entries) = self.commit(vec![again.clone().into()], Vec::new()).await {
            self.emit_prompt(&again, entries.first().map(|entry| entry.seq));
        }
    }
}
