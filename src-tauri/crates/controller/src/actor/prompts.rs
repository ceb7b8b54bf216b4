//! Questions to a person: asked one at a time, answered exactly once, asked again when what was
//! shown is no longer so (TR-51).

use holdfast_api::ApiError;
use holdfast_api::event::Event;
use holdfast_api::session::Approve;
use holdfast_domain::recovery::barrier;
use holdfast_domain::transcript::record::{
    CallRefused, PromptAnswered, PromptAsked, ProposedCall, Record,
};
use holdfast_journal::JournalError;
use holdfast_tools::Prepared;

use super::calls::Plan;
use super::{Actor, views};
use crate::store::api_error;

impl Actor {
    pub(super) fn emit_prompt(&self, asked: &PromptAsked, seq: Option<u64>) {
        let prompt = views::prompt_view(&self.store.session, asked, &self.in_flight());
        self.emit(&asked.turn_id, seq, Event::ApprovalRequest { prompt });
    }

    pub(super) fn emit_prompt_closed(&self, asked: &PromptAsked) {
        self.emit(
            &asked.turn_id,
            None,
            Event::PromptAnswered {
                prompt_id: asked.prompt_id.clone(),
                allow: false,
            },
        );
    }

    /// Closes the open question without an answer.
    pub(super) async fn close_prompt(
        &mut self,
        code: &str,
        text: &str,
    ) -> Result<(), JournalError> {
        let Some(asked) = self.store.session.prompt.clone() else {
            return Ok(());
        };
        let refused = CallRefused {
            turn_id: asked.turn_id.clone(),
            call_id: asked.call_id.clone(),
            code: code.to_owned(),
            text: text.to_owned(),
        };
        let entries = self.commit_evidence(vec![refused.into()]).await?;
        self.prepared.remove(&asked.call_id);
        self.emit_prompt_closed(&asked);
        self.emit_result(&asked.call_id, entries.first().map(|entry| entry.seq));
        Ok(())
    }

    /// `POST /approve`: durable before it is answered; at most one answer counts (C16).
    pub(super) async fn approve(&mut self, answer: Approve) -> Result<(), ApiError> {
        if self.running.as_ref().is_some_and(|phase| phase.retry) {
            return Err(ApiError::conflict(
                "session_busy",
                "a retry is running; your answer changed nothing, and the question stays open; \
                 answer when the retry has ended",
            ));
        }
        self.writable().await?;
        let asked = self
            .store
            .session
            .prompt
            .clone()
            .filter(|asked| asked.prompt_id == answer.id)
            .ok_or_else(|| {
                ApiError::conflict(
                    "prompt_not_pending",
                    "this question is no longer pending; your answer changed nothing; refresh",
                )
            })?;
        if asked.generation != answer.generation {
            return Err(stale());
        }
        let scope = answer.scope.unwrap_or_else(|| "once".to_owned());
        if answer.allow && !asked.scopes.contains(&scope) {
            return Err(ApiError::bad_request(
                "scope_unknown",
                format!(
                    "the scope {scope:?} is not offered; the question is still open; use one of: \
                     {}",
                    asked.scopes.join(", ")
                ),
            ));
        }
        let answered = PromptAnswered {
            prompt_id: asked.prompt_id.clone(),
            generation: asked.generation,
            allow: answer.allow,
            scope,
            reason: answer.reason.unwrap_or_default(),
        };
        if answer.allow {
            self.allow(asked, answered).await
        } else {
            self.deny(&asked, answered).await
        }
    }

    async fn deny(
        &mut self,
        asked: &PromptAsked,
        answered: PromptAnswered,
    ) -> Result<(), ApiError> {
        let text = if answered.reason.is_empty() {
            "denied: the person did not allow this call; nothing was run".to_owned()
        } else {
            format!(
                "denied: the person did not allow this call; nothing was run. They say: {}",
                answered.reason
            )
        };
        let refused = CallRefused {
            turn_id: asked.turn_id.clone(),
            call_id: asked.call_id.clone(),
            code: "denied".to_owned(),
            text,
        };
        let entries = self
            .commit(vec![answered.into(), refused.into()], Vec::new())
            .await
            .map_err(|error| api_error(&error))?;
        self.prepared.remove(&asked.call_id);
        self.emit_answer(asked, false);
        self.emit_result(&asked.call_id, entries.last().map(|entry| entry.seq));
        if self.running.is_none() {
            self.switch.disarm();
        }
        Ok(())
    }

    async fn allow(
        &mut self,
        asked: PromptAsked,
        answered: PromptAnswered,
    ) -> Result<(), ApiError> {
        let Some((call, step)) = self
            .store
            .session
            .call(&asked.call_id)
            .map(|call| (call.proposed.clone(), call.step))
        else {
            return Err(stale());
        };
        // TR-51: everything is checked again on the state of this moment.
        let prepared = match self.prepare(&call).await {
            Ok(prepared) => prepared,
            Err((code, text)) => {
                self.refuse_answered(&asked, answered, &code, text).await?;
                return Ok(());
            }
        };
        if !is_as_shown(&asked, &prepared) {
            let why = "the file changed since you were asked";
            self.ask_again(&asked, &call, &prepared, why).await?;
            return Err(stale());
        }
        let in_flight = self.in_flight();
        let blocking = barrier::refuses(self.store.session.attempts(), &in_flight, None)
            .map(barrier::refusal_text);
        if let Some(text) = blocking {
            self.refuse_answered(&asked, answered, "recovery_required", text)
                .await?;
            return Ok(());
        }
        let repeat = self.repeats(&prepared);
        if repeat.is_some_and(|repeat| !repeat.is_as_shown(&asked)) {
            self.ask_again(&asked, &call, &prepared, "").await?;
            return Err(stale());
        }
        self.prepared.remove(&asked.call_id);
        if self.running.is_none() {
            // After a restart: the turn goes on, by the same loop.
            self.take_off(&asked.turn_id);
            self.begin(&asked.turn_id, true).await;
            if self.running.is_none() {
                return Err(ApiError::storage(
                    "storage_failed",
                    "the answer could not be stored; nothing was run; free disk space and answer \
                     again",
                ));
            }
        }
        let mut plan = Plan::default();
        plan.records.push(Record::from(answered));
        if let Err(text) = self.start_records(&call, step, prepared, &mut plan) {
            return Err(ApiError::internal("scope_empty", text));
        }
        self.carry_out(plan, false).await;
        if self.store.session.prompt.is_some() {
            return Err(ApiError::storage(
                "write_failed",
                "the answer could not be stored; nothing was run; free disk space and answer again",
            ));
        }
        self.emit_answer(&asked, true);
        Ok(())
    }

    /// The answer is stored, and the call is refused for another reason.
    async fn refuse_answered(
        &mut self,
        asked: &PromptAsked,
        answered: PromptAnswered,
        code: &str,
        text: String,
    ) -> Result<(), ApiError> {
        let refused = CallRefused {
            turn_id: asked.turn_id.clone(),
            call_id: asked.call_id.clone(),
            code: code.to_owned(),
            text,
        };
        let entries = self
            .commit(vec![answered.into(), refused.into()], Vec::new())
            .await
            .map_err(|error| api_error(&error))?;
        self.emit_answer(asked, true);
        self.emit_result(&asked.call_id, entries.last().map(|entry| entry.seq));
        self.prepared.remove(&asked.call_id);
        if self.running.is_none() {
            self.take_off(&asked.turn_id);
            self.begin(&asked.turn_id, true).await;
        }
        Ok(())
    }

    /// What was shown is no longer so: the same question, on the present state.
    async fn ask_again(
        &mut self,
        asked: &PromptAsked,
        call: &ProposedCall,
        prepared: &Prepared,
        why: &str,
    ) -> Result<(), ApiError> {
        let again = self.question(
            call,
            prepared,
            asked.generation + 1,
            asked.prompt_id.clone(),
            why,
            self.repeats(prepared).as_ref(),
        );
        let entries = self
            .commit(vec![again.clone().into()], Vec::new())
            .await
            .map_err(|error| api_error(&error))?;
        self.emit_prompt(&again, entries.first().map(|entry| entry.seq));
        Ok(())
    }

    fn emit_answer(&self, asked: &PromptAsked, allow: bool) {
        self.emit(
            &asked.turn_id,
            None,
            Event::PromptAnswered {
                prompt_id: asked.prompt_id.clone(),
                allow,
            },
        );
    }
}

/// The call's target and effect are those that the person saw.
fn is_as_shown(asked: &PromptAsked, prepared: &Prepared) -> bool {
    asked.tool == prepared.canonical_tool
        && asked.argument_digest == prepared.argument_digest
        && asked.file == prepared.file
}

fn stale() -> ApiError {
    ApiError::conflict(
        "prompt_stale",
        "the question changed since you saw it; nothing was run; look at it again and answer anew",
    )
}
