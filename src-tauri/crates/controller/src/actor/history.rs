//! A conversation as a whole: compacted, taken back, copied.
//!
//! Guarantees: the log only grows; nothing is executed and no receipt is touched (TR-22); what ends
//! before its one record is durable has changed nothing. A compaction is no turn of the log, and
//! excludes turns and resolutions while it runs.

use holdfast_api::ApiError;
use holdfast_api::event::Event;
use holdfast_api::history::{CompactionStarted, KeptEffect, Rewind, RewindReply};
use holdfast_api::session::{LastError, session_path};
use holdfast_domain::transcript::record::{Compacted, Rewound, Usage};
use holdfast_domain::transcript::session::Item;
use holdfast_domain::transcript::view;
use holdfast_journal::Lease;
use holdfast_provider::{ModelEvent, ModelReply, ModelRequest, ProviderError};

use super::message::Reply;
use super::turn::ask;
use super::{Actor, views};
use crate::stops::{StopPoint, pass};
use crate::store::api_error;

/// What the provider says when the answer was longer than it may be.
const CUT_SHORT: &str = "length";

impl Actor {
    /// The compaction that runs: what Stop names to stop it.
    pub(super) fn compaction(&self) -> Option<&str> {
        self.running
            .as_ref()
            .filter(|turn| turn.compacting.is_some())
            .map(|turn| turn.turn_id.as_str())
    }

    /// `POST /compact`: answered when the model is asked.
    pub(super) async fn compact(&mut self, reply: Reply<CompactionStarted>) {
        match self.begin_compaction().await {
            Ok((client, request, upto_seq)) => {
                let turn_id = self.host.source.id();
                self.run_as(&turn_id, Some(upto_seq));
                if let Some(turn) = &mut self.running {
                    let outbox = self.outbox.clone();
                    turn.model = Some(ask(outbox, client, request, turn_id.clone(), 0));
                }
                self.publish();
                let started = Event::TurnStarted {
                    continuation: false,
                };
                self.emit(&turn_id, None, started);
                let _ = reply.send(Ok(CompactionStarted { turn_id }));
            }
            Err(error) => {
                let _ = reply.send(Err(error));
            }
        }
    }

    async fn begin_compaction(&mut self) -> Result<Asked, ApiError> {
        self.at_rest().await?;
        let upto = self.store.session.compacted_upto;
        let is_new = |item: &Item| match item {
            Item::User { seq, .. } | Item::Assistant { seq, .. } | Item::Note { seq, .. } => {
                *seq > upto
            }
            Item::Retry { .. } | Item::Compacted { .. } | Item::Rewound { .. } => false,
        };
        if !self.store.session.items.iter().any(is_new) {
            return Err(ApiError::conflict(
                "nothing_to_compact",
                "nothing was said since the last compaction; nothing was changed",
            ));
        }
        let (client, model) = self.host.models.client(&self.store.session.model)?;
        // The model is told of every call, so each needs its one result (TR-15).
        self.close_calls().await?;
        let messages = view::summary_request(&self.store.session);
        view::check_pairing(&messages)
            .map_err(|error| ApiError::conflict("transcript_unpaired", error.to_string()))?;
        let request = ModelRequest {
            model,
            messages,
            tools: Vec::new(),
        };
        Ok((client, request, self.store.session.last_seq))
    }

    /// Nothing runs, nothing waits for an answer, and records can be stored.
    async fn at_rest(&mut self) -> Result<(), ApiError> {
        if self.running.is_some() && !self.closed {
            return Err(ApiError::conflict(
                "session_busy",
                "a turn is running; nothing was changed; wait for its end or stop it first",
            ));
        }
        self.writable().await?;
        if self.store.session.prompt.is_some() {
            return Err(ApiError::conflict(
                "prompt_pending",
                "a question waits for your answer; nothing was changed; answer it or stop it first",
            ));
        }
        Ok(())
    }

    /// What the model says while it is asked for a summary. Only the whole of it counts.
    pub(super) async fn summary_item(&mut self, item: Result<ModelEvent, ProviderError>) {
        match item {
            Ok(ModelEvent::Text(_) | ModelEvent::Reasoning(_) | ModelEvent::ToolCall { .. }) => {}
            Ok(ModelEvent::Retrying {
                attempt,
                wait_ms,
                code,
                message,
            }) => {
                let turn_id = self.compaction().unwrap_or_default().to_owned();
                let retrying = Event::Retrying {
                    attempt,
                    wait_ms,
                    code: code.to_owned(),
                    message,
                };
                self.emit(&turn_id, None, retrying);
            }
            Ok(ModelEvent::Finished(reply)) => self.summary_came(reply).await,
            Err(error) => self.end_compaction("failed", error.code(), &error.to_string()),
        }
    }

    /// The request is over without a whole answer.
    pub(super) fn summary_gone(&mut self) {
        self.end_compaction(
            "failed",
            "provider_incomplete",
            "the model's summary ended without its end mark; nothing was changed; compact again",
        );
    }

    async fn summary_came(&mut self, reply: ModelReply) {
        let Some(turn) = &mut self.running else {
            return;
        };
        turn.model = None;
        let (stopped, upto_seq) = (turn.cancel.is_cancelled(), turn.compacting);
        let turn_id = turn.turn_id.clone();
        if stopped {
            return self.end_compaction("cancelled", "", "");
        }
        if reply.text.trim().is_empty() {
            return self.end_compaction(
                "failed",
                "summary_empty",
                "the model answered without a summary; nothing was changed; compact again or \
                 choose another model",
            );
        }
        if reply.finish_reason == CUT_SHORT {
            return self.end_compaction(
                "failed",
                "summary_cut_short",
                "the model's summary is longer than its answers may be, and a part of it is \
                 missing; nothing was changed; compact again or choose another model",
            );
        }
        let usage = reply.usage.map(|usage| Usage {
            input: usage.input,
            output: usage.output,
            cached_input: usage.cached_input,
            reasoning: usage.reasoning,
        });
        let compacted = Compacted {
            upto_seq: upto_seq.unwrap_or_default(),
            summary: reply.text,
            usage,
        };
        pass(StopPoint::SummaryReady);
        match self.commit(vec![compacted.into()], Vec::new()).await {
            Ok(entries) => {
                pass(StopPoint::HistoryDurable);
                self.emit_messages(&entries);
                if let Some(usage) = usage {
                    self.emit(&turn_id, None, Event::Usage { usage });
                }
                self.end_compaction("completed", "", "");
            }
            Err(error) => self.end_compaction("failed", error.code(), &error.to_string()),
        }
    }

    /// A compaction leaves no end in the log: its record is all that counts.
    pub(super) fn end_compaction(&mut self, status: &str, code: &str, message: &str) {
        let Some(mut turn) = self.running.take() else {
            return;
        };
        if let Some(model) = turn.model.take() {
            model.abort();
        }
        if status == "failed" {
            self.last_error = Some(LastError {
                code: code.to_owned(),
                message: message.to_owned(),
            });
        }
        self.arm_for_prompt();
        self.publish();
        self.emit(
            &turn.turn_id,
            None,
            Event::TurnDone {
                status: status.to_owned(),
                code: code.to_owned(),
                message: message.to_owned(),
            },
        );
        self.write_index();
    }

    /// `POST /rewind`: durable before it is answered.
    pub(super) async fn rewind(&mut self, request: Rewind) -> Result<RewindReply, ApiError> {
        self.at_rest().await?;
        let session = &self.store.session;
        let kept = session.kept_by_rewind(request.seq).ok_or_else(|| {
            ApiError::conflict(
                "rewind_target_unknown",
                "no message of yours is at that place of the conversation; nothing was changed; \
                 refresh and choose a message",
            )
        })?;
        let reply = RewindReply {
            text: kept.text.to_owned(),
            kept: self.kept_effects(&kept.effects),
        };
        let rewound = Rewound {
            to_seq: request.seq,
            reason: "person".to_owned(),
        };
        let entries = self
            .commit(vec![rewound.into()], Vec::new())
            .await
            .map_err(|error| api_error(&error))?;
        pass(StopPoint::HistoryDurable);
        let seq = entries.first().map(|entry| entry.seq);
        let to_seq = request.seq;
        self.emit("", seq, Event::Rewound { to_seq });
        self.emit_messages(&entries);
        // The title may have been that message.
        let session_path = session_path(&self.host.hub.current());
        self.emit("", None, Event::SessionChanged { session_path });
        self.write_index();
        Ok(reply)
    }

    fn kept_effects(
        &self,
        attempts: &[&holdfast_domain::recovery::attempt::Attempt],
    ) -> Vec<KeptEffect> {
        views::kept(attempts, &self.in_flight())
    }

    /// A copy of the log as it is between turns, into the folder of that lease.
    pub(super) async fn copy(&mut self, to: Lease, to_id: String) -> Result<Lease, ApiError> {
        self.at_rest().await?;
        let storage = std::sync::Arc::clone(&self.host.storage);
        let (from, from_id) = (self.store.folder().to_path_buf(), self.id.clone());
        let copied = tokio::task::spawn_blocking(move || {
            holdfast_journal::copy_session(&storage, &from, &from_id, &to, &to_id).map(|_| to)
        });
        match copied.await {
            Ok(copied) => copied.map_err(|error| api_error(&error)),
            Err(_) => Err(ApiError::internal(
                "internal",
                "the session could not be copied because of a defect; it is intact",
            )),
        }
    }
}

/// The model, the request, and the last record that it tells of.
type Asked = (
    std::sync::Arc<dyn holdfast_provider::ModelClient>,
    ModelRequest,
    u64,
);
