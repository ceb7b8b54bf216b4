//! The queue (RS-16): what comes while a turn runs waits, and runs in its order.
//!
//! Guarantees: a change is durable before it is answered or told; an item leaves the queue by the
//! record of its message and by nothing else, so that a crash neither loses it nor doubles it; where
//! something waits and may run, nobody is told "idle" in between; what could not be begun stays and
//! is paused.

use holdfast_api::ApiError;
use holdfast_api::event::Event;
use holdfast_api::inbox::{
    Disposition, EditItem, Enqueue, Enqueued, InboxItem, InboxReceipt, InboxView, Intent, MoveItem,
    ReceiptState,
};
use holdfast_domain::transcript::inbox::{CAPACITY, Place, QueuedItem};
use holdfast_domain::transcript::record::{
    InboxDeleted, InboxEdited, InboxMoved, InboxPaused, InboxQueued, InboxResumed, Record,
    UserMessage,
};

use super::Actor;
use super::input::{check_input, check_key};
use super::message::Reply;
use crate::stops::{StopPoint, pass};
use crate::store::api_error;

impl Actor {
    /// `GET /inbox`.
    pub(super) fn inbox_view(&self) -> InboxView {
        let inbox = &self.store.session.inbox;
        let items = inbox.items().iter().zip(1..).map(|(item, position)| {
            let QueuedItem {
                id,
                key,
                text,
                intent,
                at,
                returned,
            } = item.clone();
            InboxItem {
                item_id: id,
                input: text,
                intent,
                position,
                queued_at: at,
                idempotency_key: key,
                recovered: returned,
            }
        });
        InboxView {
            revision: inbox.revision(),
            paused: self.is_queue_paused(),
            recovered: inbox.is_recovered(),
            reason: match inbox.pause_reason() {
                "" if self.queue_held => "storage_failed".to_owned(),
                reason => reason.to_owned(),
            },
            items: items.collect(),
            capacity: CAPACITY as u64,
        }
    }

    pub(super) fn is_queue_paused(&self) -> bool {
        self.queue_held || self.store.session.inbox.is_paused()
    }

    /// `GET /inbox/receipt`.
    pub(super) fn inbox_receipt(&self, key: &str) -> Result<InboxReceipt, ApiError> {
        let session = &self.store.session;
        let known = session.inbox.known(key).ok_or_else(|| {
            ApiError::not_found(
                "receipt_unknown",
                "no message of this session has that key; nothing was stored under it; send it \
                 again with the same key",
            )
        })?;
        let runs = session
            .open_turn()
            .is_some_and(|turn| turn.id == known.turn_id && self.runs_turn(&turn.id));
        let state = match known.place {
            Place::Queued => ReceiptState::Queued,
            Place::Deleted => ReceiptState::Deleted,
            Place::Taken if runs => ReceiptState::Running,
            Place::Taken => ReceiptState::Done,
        };
        Ok(InboxReceipt {
            key: key.to_owned(),
            item_id: known.item_id.clone(),
            disposition: if known.was_queued {
                Disposition::QueuedFollowup
            } else {
                Disposition::Started
            },
            state,
            turn_id: (known.place == Place::Taken).then(|| known.turn_id.clone()),
        })
    }

    fn runs_turn(&self, turn_id: &str) -> bool {
        self.running
            .as_ref()
            .is_some_and(|turn| turn.turn_id == turn_id)
    }

    /// `POST /inbox/items`: the answer means durable.
    pub(super) async fn enqueue(&mut self, request: Enqueue, reply: Reply<Enqueued>) {
        let enqueued = self.accept_item(request).await;
        let begins = enqueued
            .as_ref()
            .ok()
            .filter(|enqueued| enqueued.disposition == Disposition::Started)
            .map(|enqueued| enqueued.item_id.clone());
        if let Some(turn_id) = &begins {
            // Whoever has the answer finds the session executing.
            self.take_off(turn_id);
        }
        let _ = reply.send(enqueued);
        if let Some(turn_id) = begins {
            self.begin(&turn_id, false).await;
        }
    }

    async fn accept_item(&mut self, request: Enqueue) -> Result<Enqueued, ApiError> {
        let key = request.idempotency_key;
        check_key("idempotencyKey", &key)?;
        if key.is_empty() {
            return Err(ApiError::bad_request(
                "idempotency_key_missing",
                "idempotencyKey is empty; nothing was stored; send one that is new for each \
                 message",
            ));
        }
        check_input(&request.input)?;
        if let Some(known) = self.message_of(&key, &request.input)? {
            let place = self.store.session.inbox.item(&known.item_id);
            return Ok(Enqueued {
                item_id: known.item_id.clone(),
                disposition: Disposition::IdempotentHit,
                position: place.map_or(0, |(position, _)| position),
            });
        }
        self.writable().await?;
        let item_id = self.host.source.id();
        if self.may_begin(request.intent) {
            self.store_message(UserMessage {
                turn_id: item_id.clone(),
                text: request.input,
                submission_id: key,
                steer_item: String::new(),
            })
            .await?;
            pass(StopPoint::SubmitDurable);
            return Ok(Enqueued {
                item_id,
                disposition: Disposition::Started,
                position: 0,
            });
        }
        if self.store.session.inbox.items().len() >= CAPACITY {
            return Err(ApiError::conflict(
                "inbox_full",
                format!(
                    "{CAPACITY} messages wait already; this one was not stored; delete one or \
                     wait until one has run, then send it again"
                ),
            ));
        }
        let queued = InboxQueued {
            item_id: item_id.clone(),
            key,
            text: request.input,
            intent: request.intent,
        };
        self.change(vec![queued.into()], Some(StopPoint::ItemDurable))
            .await?;
        let place = self.store.session.inbox.item(&item_id);
        Ok(Enqueued {
            position: place.map_or(0, |(position, _)| position),
            item_id,
            disposition: Disposition::QueuedFollowup,
        })
    }

    /// Nothing is in a message's way. What a person wants at once goes ahead of a paused queue, as
    /// a submit does.
    fn may_begin(&self, intent: Intent) -> bool {
        let rests = self.running.is_none() && self.store.session.prompt.is_none();
        rests
            && match intent {
                Intent::Steer => true,
                Intent::Followup => {
                    !self.is_queue_paused() && self.store.session.inbox.items().is_empty()
                }
            }
    }

    /// `PATCH /inbox/items/{id}`.
    pub(super) async fn edit_item(&mut self, id: &str, edit: EditItem) -> Result<(), ApiError> {
        if let Some(input) = &edit.input {
            check_input(input)?;
        }
        self.writable().await?;
        self.waiting(id)?;
        if edit == EditItem::default() {
            return Ok(());
        }
        let sends_now = edit.intent == Some(Intent::Steer);
        let edited = InboxEdited {
            item_id: id.to_owned(),
            text: edit.input,
            intent: edit.intent,
        };
        self.change(vec![edited.into()], None).await?;
        let rests = self.running.is_none() && self.store.session.prompt.is_none();
        if sends_now && rests && self.queue_held {
            self.begin_item(id).await?;
        }
        Ok(())
    }

    /// `POST /inbox/move`.
    pub(super) async fn move_item(&mut self, request: MoveItem) -> Result<(), ApiError> {
        self.writable().await?;
        self.waiting(&request.item_id)?;
        let moved = InboxMoved {
            item_id: request.item_id,
            position: request.position,
        };
        self.change(vec![moved.into()], None).await
    }

    /// `DELETE /inbox/items/{id}`.
    pub(super) async fn delete_item(&mut self, id: &str) -> Result<(), ApiError> {
        self.writable().await?;
        self.waiting(id)?;
        let deleted = InboxDeleted {
            item_id: id.to_owned(),
        };
        self.change(vec![deleted.into()], None).await
    }

    /// `POST /inbox/pause`.
    pub(super) async fn pause_queue(&mut self) -> Result<(), ApiError> {
        self.writable().await?;
        if self.store.session.inbox.is_paused() {
            return Ok(());
        }
        let paused = InboxPaused {
            recovered: false,
            reason: InboxPaused::BY_PERSON.to_owned(),
        };
        self.change(vec![paused.into()], None).await
    }

    /// `POST /inbox/resume`. What is next begins behind the answer.
    pub(super) async fn resume_queue(&mut self) -> Result<(), ApiError> {
        self.writable().await?;
        if self.store.session.inbox.is_paused() {
            let resumed = InboxResumed {
                reason: InboxPaused::BY_PERSON.to_owned(),
            };
            self.change(vec![resumed.into()], None).await?;
        }
        self.queue_held = false;
        Ok(())
    }

    fn waiting(&self, id: &str) -> Result<(), ApiError> {
        self.store
            .session
            .inbox
            .item(id)
            .map(|_| ())
            .ok_or_else(|| {
                ApiError::not_found(
                    "inbox_item_unknown",
                    "no message that waits has this id: it runs, has run, or was deleted; nothing \
                     was changed; refresh",
                )
            })
    }

    /// Stores a change of the queue, and tells of it.
    async fn change(
        &mut self,
        records: Vec<Record>,
        durable: Option<StopPoint>,
    ) -> Result<(), ApiError> {
        self.commit(records, Vec::new())
            .await
            .map_err(|error| api_error(&error))?;
        if let Some(point) = durable {
            pass(point);
        }
        self.emit_inbox();
        Ok(())
    }

    pub(super) fn emit_inbox(&self) {
        let inbox = &self.store.session.inbox;
        let changed = Event::InboxChanged {
            revision: inbox.revision(),
            paused: self.is_queue_paused(),
            recovered: inbox.is_recovered(),
            count: inbox.items().len() as u64,
        };
        self.emit("", Some(inbox.revision()), changed);
    }

    /// What waits and may run now. Jobs hold nothing up; a question does.
    pub(super) fn ready(&self) -> Option<&QueuedItem> {
        let rests = self.running.is_none()
            && !self.finishing
            && !self.closed
            && self.store.session.prompt.is_none();
        self.store
            .session
            .inbox
            .next()
            .filter(|_| rests && !self.queue_held)
    }

    /// Begins the turn of what is next; false when nothing is, or when it can't be begun now.
    pub(super) async fn start_next(&mut self) -> bool {
        let Some(id) = self.ready().map(|item| item.id.clone()) else {
            return false;
        };
        let Err(error) = self.begin_item(&id).await else {
            return true;
        };
        self.queue_held = true;
        self.notice(
            "inbox_held",
            format!(
                "the next message that waits could not be begun ({error}); it is kept, and the \
                 queue stands still; resume it"
            ),
        );
        self.emit_inbox();
        false
    }

    async fn begin_item(&mut self, id: &str) -> Result<(), ApiError> {
        self.writable().await?;
        let Some((_, item)) = self.store.session.inbox.item(id) else {
            return Ok(());
        };
        let message = UserMessage {
            turn_id: item.id.clone(),
            text: item.text.clone(),
            submission_id: item.key.clone(),
            steer_item: String::new(),
        };
        self.store_message(message).await?;
        pass(StopPoint::NextDurable);
        self.take_off(id);
        self.emit_inbox();
        self.begin(id, false).await;
        Ok(())
    }

    /// What a person wants at once comes into the turn before its model is asked again. The turn
    /// can't go on without what was wanted of it, so a failure ends it.
    pub(super) async fn take_in_steers(&mut self) -> bool {
        while let Some((turn_id, message)) = self.next_steer() {
            match self.commit(vec![message.into()], Vec::new()).await {
                Ok(entries) => {
                    self.emit_messages(&entries);
                    self.emit_inbox();
                }
                Err(error) => {
                    tracing::info!(turn = %turn_id, code = error.code(), "nothing came in");
                    self.end_turn("failed", error.code(), &error.to_string())
                        .await;
                    return false;
                }
            }
        }
        true
    }

    fn next_steer(&self) -> Option<(String, UserMessage)> {
        let turn_id = &self.running.as_ref()?.turn_id;
        let inbox = &self.store.session.inbox;
        let item = inbox.next_steer().filter(|_| !self.queue_held)?;
        let message = UserMessage {
            turn_id: turn_id.clone(),
            text: item.text.clone(),
            submission_id: item.key.clone(),
            steer_item: item.id.clone(),
        };
        Some((turn_id.clone(), message))
    }

    /// What waits does not run by itself behind a turn that failed or that a person stopped. What
    /// comes after that was meant to run.
    pub(super) fn pause_of(&self, reason: &str) -> Option<InboxPaused> {
        let inbox = &self.store.session.inbox;
        (!inbox.items().is_empty() && !inbox.is_paused()).then(|| InboxPaused {
            recovered: false,
            reason: reason.to_owned(),
        })
    }
}
