//! The turn's loop: its start, and model requests.

use std::sync::Arc;

use futures_util::StreamExt;
use holdfast_api::event::Event;
use holdfast_api::transcript::LiveMessage;
use holdfast_domain::recovery::identity::call_id;
use holdfast_domain::transcript::next::{Next, next};
use holdfast_domain::transcript::record::{AssistantMessage, ProposedCall, TurnStarted, Usage};
use holdfast_domain::transcript::{notes, view};
use holdfast_provider::{ModelClient, ModelEvent, ModelReply, ModelRequest, ProviderError};
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use super::message::Message;
use super::{Actor, Running};

impl Actor {
    /// From here on the turn can be stopped and is shown as executing.
    pub(super) fn take_off(&mut self, turn_id: &str) {
        self.run_as(turn_id, None);
        self.publish();
    }

    /// What runs from now on: a turn, or a compaction of all up to that record.
    pub(super) fn run_as(&mut self, turn_id: &str, compacting: Option<u64>) {
        let cancel = CancellationToken::new();
        self.switch.arm(turn_id, cancel.clone());
        self.running = Some(Running {
            turn_id: turn_id.to_owned(),
            retry: false,
            cancel,
            model: None,
            calls: std::collections::BTreeMap::new(),
            detach: std::collections::BTreeMap::new(),
            live: LiveMessage::default(),
            streaming: false,
            compacting,
        });
    }

    /// Starts the loop of a turn that took off; what it does first is read off the fold.
    pub(super) async fn begin(&mut self, turn_id: &str, continuation: bool) {
        let started = TurnStarted {
            turn_id: turn_id.to_owned(),
            continuation,
        };
        match self.commit(vec![started.into()], Vec::new()).await {
            Ok(entries) => {
                let seq = entries.first().map(|entry| entry.seq);
                self.emit(turn_id, seq, Event::TurnStarted { continuation });
            }
            Err(error) => {
                self.end_turn("failed", error.code(), &error.to_string())
                    .await;
            }
        }
    }

    /// Takes the turn as far as it goes without waiting for anything.
    pub(super) async fn advance(&mut self) {
        loop {
            let Some(turn) = &self.running else {
                if self.start_next().await {
                    continue;
                }
                return;
            };
            if turn.retry {
                if turn.calls.is_empty() {
                    self.end_retry(None);
                }
                return;
            }
            if turn.compacting.is_some()
                || turn.model.is_some()
                || self.store.session.prompt.is_some()
            {
                return;
            }
            if turn.cancel.is_cancelled() {
                if turn.calls.is_empty() {
                    let (status, code, message) = if self.closed {
                        (
                            "interrupted",
                            "host_closed",
                            "the program was closed during this turn; nothing of it goes on",
                        )
                    } else {
                        ("cancelled", "", "")
                    };
                    self.end_turn(status, code, message).await;
                }
                return;
            }
            let running = self.running_calls();
            let mutating = |call: &ProposedCall| self.host.is_mutating(call);
            match next(&self.store.session, &running, |call| !mutating(call)) {
                Next::Model => {
                    if self.take_in_steers().await {
                        self.ask_model().await;
                    }
                }
                Next::Calls(ids) => self.take_up(&ids).await,
                Next::Synthetic(id) => self.answer_unknown(&id).await,
                Next::Wait => return,
                Next::Completed => self.end_turn("completed", "", "").await,
                Next::TooManySteps => {
                    self.end_turn(
                        "failed",
                        "too_many_steps",
                        "the turn made as many model requests as one turn may; what was done is \
                         kept; send a message to go on",
                    )
                    .await;
                }
            }
        }
    }

    /// TR-15: within a turn, a call whose outcome is unknown gets its synthetic result.
    async fn answer_unknown(&mut self, call_id: &str) {
        let session = &self.store.session;
        let Some(record) = session
            .call(call_id)
            .map(|call| notes::closing(session, call))
        else {
            return;
        };
        match self.commit_evidence(vec![record]).await {
            Ok(entries) => self.emit_result(call_id, entries.first().map(|entry| entry.seq)),
            Err(error) => {
                self.end_turn("failed", error.code(), &error.to_string())
                    .await;
            }
        }
    }

    async fn ask_model(&mut self) {
        let client = self.host.models.client(&self.store.session.model);
        let (client, model) = match client {
            Ok(found) => found,
            Err(error) => {
                self.end_turn("failed", &error.code, &error.message).await;
                return;
            }
        };
        let messages = view::outbound(&self.store.session);
        // TR-43: the gate is behind everything that shapes the request.
        if let Err(error) = view::check_pairing(&messages) {
            self.end_turn("failed", "transcript_unpaired", &error.to_string())
                .await;
            return;
        }
        let request = ModelRequest {
            model,
            messages,
            tools: self.host.tool_specs.clone(),
        };
        let Some(turn) = &mut self.running else {
            return;
        };
        let turn_id = turn.turn_id.clone();
        let step = self
            .store
            .session
            .turn
            .as_ref()
            .map_or(1, |turn| turn.steps + 1);
        turn.live = LiveMessage {
            turn_id: turn_id.clone(),
            ..LiveMessage::default()
        };
        turn.streaming = false;
        turn.model = Some(ask(self.outbox.clone(), client, request, turn_id, step));
    }

    /// A request is over. When its reply did not come to an end, nothing more will come.
    pub(super) async fn model_gone(&mut self, turn_id: &str, step: u32, panicked: bool) {
        if !self.is_asking(turn_id, step) {
            return;
        }
        if let Some(turn) = &mut self.running {
            turn.model = None;
            turn.streaming = false;
        }
        self.keep_partial().await;
        let (code, message) = if panicked {
            (
                "model_defect",
                "the program failed by a defect of its own while it read the model's reply; what \
                 had arrived is kept, and no tool was started from it; send a message to go on",
            )
        } else {
            (
                "provider_incomplete",
                "the model's reply ended without its end mark; what had arrived is kept, and no \
                 tool was started from it; send a message to go on",
            )
        };
        self.end_turn("failed", code, message).await;
    }

    /// The present turn waits for the reply to this request.
    fn is_asking(&self, turn_id: &str, step: u32) -> bool {
        let steps = self
            .store
            .session
            .turn
            .as_ref()
            .map_or(0, |turn| turn.steps);
        self.running
            .as_ref()
            .is_some_and(|turn| turn.turn_id == turn_id && turn.model.is_some())
            && step == steps + 1
    }

    /// What the model of a step says. Items of an earlier step or turn are dropped.
    pub(super) async fn model_item(
        &mut self,
        turn_id: &str,
        step: u32,
        item: Result<ModelEvent, ProviderError>,
    ) {
        if !self.is_asking(turn_id, step) {
            return;
        }
        let Some(turn) = &mut self.running else {
            return;
        };
        match item {
            Ok(ModelEvent::Text(text)) => {
                turn.streaming = true;
                turn.live.text.push_str(&text);
                self.emit(turn_id, None, Event::Text { text });
            }
            Ok(ModelEvent::Reasoning(text)) => {
                turn.streaming = false;
                turn.live.reasoning.push_str(&text);
                self.emit(turn_id, None, Event::Reasoning { text });
            }
            Ok(ModelEvent::ToolCall { .. }) => turn.streaming = false,
            Ok(ModelEvent::Retrying {
                attempt,
                wait_ms,
                code,
                message,
            }) => {
                turn.streaming = false;
                let retrying = Event::Retrying {
                    attempt,
                    wait_ms,
                    code: code.to_owned(),
                    message,
                };
                self.emit(turn_id, None, retrying);
            }
            Ok(ModelEvent::Finished(reply)) => {
                turn.model = None;
                turn.streaming = false;
                self.finished(turn_id, step, reply).await;
            }
            Err(error) => {
                turn.model = None;
                turn.streaming = false;
                self.keep_partial().await;
                self.end_turn("failed", error.code(), &error.to_string())
                    .await;
            }
        }
    }

    /// Stores the model's message, together with the records of the calls that are taken up first.
    async fn finished(&mut self, turn_id: &str, step: u32, reply: ModelReply) {
        let usage = reply.usage.map(|usage| Usage {
            input: usage.input,
            output: usage.output,
            cached_input: usage.cached_input,
            reasoning: usage.reasoning,
        });
        let calls = self.proposals(reply.calls);
        let message = AssistantMessage {
            turn_id: turn_id.to_owned(),
            step,
            text: reply.text,
            reasoning: reply.reasoning,
            calls,
            finish_reason: reply.finish_reason,
            usage,
            partial: false,
        };
        if let Some(turn) = &mut self.running {
            turn.live = LiveMessage::default();
        }
        self.take_up_first(message).await;
        if let Some(usage) = usage {
            self.emit(turn_id, None, Event::Usage { usage });
        }
    }

    /// TR-06: our ids for the provider's.
    fn proposals(&self, calls: Vec<holdfast_provider::ModelCall>) -> Vec<ProposedCall> {
        let mut proposed: Vec<ProposedCall> = Vec::new();
        for call in calls {
            let taken = |id: &str| {
                self.store.session.call(id).is_some() || proposed.iter().any(|p| p.call_id == id)
            };
            let id = call_id(&call.provider_id, taken, &self.host.source.id());
            proposed.push(ProposedCall {
                call_id: id,
                provider_id: call.provider_id,
                name: call.name,
                arguments: call.arguments,
            });
        }
        proposed
    }

    /// C20: what was streamed of an answer that is cut short is kept, and marked.
    pub(super) async fn keep_partial(&mut self) {
        let Some(turn) = &mut self.running else {
            return;
        };
        let live = std::mem::take(&mut turn.live);
        if live.text.is_empty() && live.reasoning.is_empty() {
            return;
        }
        let steps = self
            .store
            .session
            .turn
            .as_ref()
            .map_or(0, |turn| turn.steps);
        let message = AssistantMessage {
            turn_id: turn.turn_id.clone(),
            step: steps + 1,
            text: live.text,
            reasoning: live.reasoning,
            partial: true,
            finish_reason: "interrupted".to_owned(),
            ..AssistantMessage::default()
        };
        if let Ok(entries) = self.commit(vec![message.into()], Vec::new()).await {
            self.emit_messages(&entries);
        }
    }
}

/// Sends a request; what the model says and the end of it come back as messages.
pub(super) fn ask(
    outbox: UnboundedSender<Message>,
    client: Arc<dyn ModelClient>,
    request: ModelRequest,
    turn_id: String,
    step: u32,
) -> AbortHandle {
    let (told, asking) = (outbox.clone(), turn_id.clone());
    let request = tokio::spawn(async move {
        let mut stream = client.stream(request);
        while let Some(item) = stream.next().await {
            let message = Message::Model {
                turn_id: asking.clone(),
                step,
                item: Box::new(item),
            };
            if told.send(message).is_err() {
                return;
            }
        }
    });
    let abort = request.abort_handle();
    tokio::spawn(async move {
        let panicked = request.await.is_err_and(|error| error.is_panic());
        // Behind all that was said: whoever still waits for more waits in vain.
        let _ = outbox.send(Message::ModelGone {
            turn_id,
            step,
            panicked,
        });
    });
    abort
}
