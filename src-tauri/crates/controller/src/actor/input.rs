//! A message of a person: checked, stored, and taken as the start of a turn.
//!
//! Guarantees: an answer means durable; a key has one message, whether it was submitted or queued
//! (RS-16); a new message closes what waits for an answer (TR-51).

use holdfast_api::ApiError;
use holdfast_api::session::{Submit, Submitted};
use holdfast_domain::transcript::inbox::Known;
use holdfast_domain::transcript::notes;
use holdfast_domain::transcript::record::{Record, SystemPrompt, UserMessage};

use super::Actor;
use super::message::Reply;
use crate::prompt::system_prompt;
use crate::stops::{StopPoint, pass};
use crate::store::api_error;

/// Largest message of a person, in bytes.
pub(crate) const MAX_INPUT: usize = 4 * 1024 * 1024;
/// Longest key of a client, in bytes.
const MAX_KEY: usize = 200;

impl Actor {
    /// `POST /submit`: the answer means durable.
    pub(super) async fn submit(&mut self, request: Submit, reply: Reply<Submitted>) {
        match self.accept(request).await {
            Ok((submitted, false)) => {
                let _ = reply.send(Ok(submitted));
            }
            Ok((submitted, true)) => {
                pass(StopPoint::SubmitDurable);
                let turn_id = submitted.turn_id.clone();
                // Whoever has the answer finds the session executing.
                self.take_off(&turn_id);
                let _ = reply.send(Ok(submitted));
                self.begin(&turn_id, false).await;
            }
            Err(error) => {
                let _ = reply.send(Err(error));
            }
        }
    }

    /// The stored message, and whether it is a new one.
    async fn accept(&mut self, request: Submit) -> Result<(Submitted, bool), ApiError> {
        let key = request.submission_id.unwrap_or_default();
        check_key("submissionId", &key)?;
        check_input(&request.input)?;
        if let Some(known) = self.message_of(&key, &request.input)? {
            let submitted = Submitted {
                turn_id: known.turn_id.clone(),
                duplicate: true,
            };
            return Ok((submitted, false));
        }
        if self.running.is_some() && !self.closed {
            return Err(ApiError::conflict(
                "session_busy",
                "a turn is running; the message was not stored; queue it (POST /inbox/items), or \
                 wait for the turn's end or stop it, then send it again",
            ));
        }
        self.writable().await?;
        let turn_id = self.host.source.id();
        self.store_message(UserMessage {
            turn_id: turn_id.clone(),
            text: request.input,
            submission_id: key,
            steer_item: String::new(),
        })
        .await?;
        let submitted = Submitted {
            turn_id,
            duplicate: false,
        };
        Ok((submitted, true))
    }

    /// What is known of a key that comes with this text.
    pub(super) fn message_of(&self, key: &str, input: &str) -> Result<Option<&Known>, ApiError> {
        match self.store.session.inbox.known(key) {
            Some(known) if !known.is_same_input(input) => Err(ApiError::conflict(
                "idempotency_conflict",
                "this key belongs to another message; nothing was stored; use a new one",
            )),
            known => Ok(known),
        }
    }

    /// Stores the message that begins a turn, with all that has to be told before it.
    pub(super) async fn store_message(&mut self, message: UserMessage) -> Result<(), ApiError> {
        // TR-51: a new message closes what waits; every earlier call gets its one result.
        let closed_prompt = self.store.session.prompt.clone();
        self.close_calls().await?;
        if let Some(prompt) = closed_prompt.filter(|_| self.store.session.prompt.is_none()) {
            self.switch.disarm();
            self.emit_prompt_closed(&prompt);
        }
        let mut records: Vec<Record> = Vec::new();
        if self.store.session.system_prompt.is_none() {
            let workspace = std::path::Path::new(&self.store.session.header.workspace);
            records.push(
                SystemPrompt {
                    text: system_prompt(workspace),
                }
                .into(),
            );
        }
        let note = notes::host_note(&self.store.session);
        records.extend(note.map(Record::from));
        records.push(message.into());
        let entries = self
            .commit(records, Vec::new())
            .await
            .map_err(|error| api_error(&error))?;
        self.emit_messages(&entries);
        self.unstored_end = None;
        self.last_error = None;
        Ok(())
    }

    /// TR-15: gives every earlier call its one result. Told at once: what is closed stays so,
    /// whatever becomes of that for which it is done.
    pub(super) async fn close_calls(&mut self) -> Result<(), ApiError> {
        let closings = notes::closings(&self.store.session);
        if closings.is_empty() {
            return Ok(());
        }
        let closed: Vec<String> = self
            .store
            .session
            .unanswered()
            .iter()
            .map(|call| call.proposed.call_id.clone())
            .collect();
        self.commit(closings, Vec::new())
            .await
            .map_err(|error| api_error(&error))?;
        for call in closed {
            self.emit_result(&call, None);
        }
        Ok(())
    }
}

/// A key is bounded; `field` is its name in the request.
pub(super) fn check_key(field: &str, key: &str) -> Result<(), ApiError> {
    if key.len() <= MAX_KEY {
        return Ok(());
    }
    Err(ApiError::bad_request(
        "submission_id_invalid",
        format!("{field} is longer than {MAX_KEY} bytes; nothing was stored; use a shorter one"),
    ))
}

/// A message says something, and is bounded.
pub(super) fn check_input(input: &str) -> Result<(), ApiError> {
    if input.trim().is_empty() {
        return Err(ApiError::bad_request(
            "input_empty",
            "the message is empty; nothing was stored; write something",
        ));
    }
    if input.len() > MAX_INPUT {
        return Err(ApiError::new(
            413,
            "input_too_large",
            format!("the message is larger than {MAX_INPUT} bytes; nothing was stored"),
        ));
    }
    Ok(())
}
