//! A session's fold as its surfaces show it. Every surface's word for an attempt comes from
//! [`attempt_word`] (TR-47).

use holdfast_api::history::KeptEffect;
use holdfast_api::session::{Approval, Earlier, PendingPrompt};
use holdfast_api::transcript::{ToolView, TranscriptItem};
use holdfast_domain::canonical::check_arguments;
use holdfast_domain::recovery::attempt::Attempt;
use holdfast_domain::recovery::barrier::InFlight;
use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_domain::recovery::repeat;
use holdfast_domain::transcript::record::{AssistantMessage, PromptAsked, ResultSource};
use holdfast_domain::transcript::session::{Call, Item, Session};

/// The one word for an attempt's state on every surface: `in_flight`, or the state. An attempt that
/// started and has no executor here is `unknown`, whatever its log says last.
pub(crate) fn attempt_word(attempt: &Attempt, in_flight: &InFlight) -> &'static str {
    let open = attempt.result.is_none()
        && matches!(
            attempt.state,
            AttemptState::Pending
                | AttemptState::Started
                | AttemptState::Running
                | AttemptState::Unknown
        );
    if open && in_flight.contains(&attempt.identity.attempt_id) {
        return "in_flight";
    }
    match attempt.state {
        AttemptState::Started | AttemptState::Running => AttemptState::Unknown.as_str(),
        state => state.as_str(),
    }
}

/// A call as its card shows it.
pub(crate) fn tool_view(
    session: &Session,
    call: &Call,
    in_flight: &InFlight,
    read_only: bool,
) -> ToolView {
    let args = check_arguments(&call.proposed.arguments)
        .unwrap_or_else(|_| serde_json::Value::String(call.proposed.arguments.clone()));
    let mut view = ToolView {
        id: call.proposed.call_id.clone(),
        name: call.proposed.name.clone(),
        args,
        state: "proposed".to_owned(),
        read_only,
        ..ToolView::default()
    };
    if let Some((code, text)) = &call.refusal {
        "not_started".clone_into(&mut view.state);
        view.code = Some(code.clone());
        view.output.clone_from(text);
        view.result_source = Some("synthetic".to_owned());
    }
    let Some(attempt) = session.attempt_of(&call.proposed.call_id) else {
        return view;
    };
    attempt_word(attempt, in_flight).clone_into(&mut view.state);
    view.attempt_id.clone_from(&attempt.identity.attempt_id);
    view.read_only = attempt.read_only;
    view.effect_summary.clone_from(&attempt.effect_summary);
    view.started_at = attempt.started_at;
    view.background = attempt.background.as_ref().map(|job| job.by.clone());
    view.superseded_by.clone_from(&attempt.superseded_by);
    view.retry_of.clone_from(&attempt.retry_of);
    match &attempt.result {
        Some(result) => {
            view.result_source = Some(
                match result.source {
                    ResultSource::Live => "live",
                    ResultSource::Recovered => "recovered",
                    ResultSource::Synthetic => "synthetic",
                }
                .to_owned(),
            );
            view.output.clone_from(&result.text);
            view.truncated = result.truncated;
            view.diff.clone_from(&result.diff);
            view.exit_code = result.exit.as_ref().and_then(|exit| exit.code);
            view.duration_ms = Some(result.duration_ms);
        }
        None if call.synthetic.is_some() => {
            view.result_source = Some("synthetic".to_owned());
        }
        None => {}
    }
    view
}

/// The transcript in order: each message, and behind it its calls.
pub(crate) fn items(
    session: &Session,
    in_flight: &InFlight,
    range: std::ops::Range<usize>,
    tool: impl Fn(&Call) -> ToolView,
) -> Vec<TranscriptItem> {
    session
        .items
        .get(range)
        .unwrap_or_default()
        .iter()
        .flat_map(|item| item_views(session, item, in_flight, &tool))
        .collect()
}

fn item_views(
    session: &Session,
    item: &Item,
    in_flight: &InFlight,
    tool: &impl Fn(&Call) -> ToolView,
) -> Vec<TranscriptItem> {
    let bare = |seq, at, kind: &str, turn_id: &str| TranscriptItem {
        seq,
        kind: kind.to_owned(),
        text: None,
        reasoning: None,
        tool: None,
        turn_id: turn_id.to_owned(),
        at,
        partial: false,
        kept: Vec::new(),
    };
    match item {
        Item::User {
            seq,
            at,
            turn_id,
            text,
        } => vec![TranscriptItem {
            text: Some(text.clone()),
            ..bare(*seq, *at, "user", turn_id)
        }],
        Item::Compacted {
            seq, at, summary, ..
        } => vec![TranscriptItem {
            text: Some(summary.clone()),
            ..bare(*seq, *at, "compacted", "")
        }],
        Item::Rewound {
            seq, at, to_seq, ..
        } => vec![TranscriptItem {
            kept: kept(&session.effects(*to_seq, *seq), in_flight),
            ..bare(*seq, *at, "rewound", "")
        }],
        Item::Note { seq, at, text, .. } => vec![TranscriptItem {
            text: Some(text.clone()),
            ..bare(*seq, *at, "note", "")
        }],
        Item::Assistant { seq, at, message } => {
            let mut views = Vec::new();
            if !message.text.is_empty() || !message.reasoning.is_empty() || message.calls.is_empty()
            {
                views.push(assistant_view(*seq, *at, message));
            }
            views.extend(message.calls.iter().filter_map(|proposed| {
                let call = session.call(&proposed.call_id)?;
                Some(TranscriptItem {
                    tool: Some(tool(call)),
                    ..bare(*seq, *at, "tool", &message.turn_id)
                })
            }));
            views
        }
        Item::Retry { seq, at, call_id } => session
            .call(call_id)
            .map(|call| TranscriptItem {
                tool: Some(tool(call)),
                ..bare(*seq, *at, "tool", &call.turn_id)
            })
            .into_iter()
            .collect(),
    }
}

fn assistant_view(seq: u64, at: u64, message: &AssistantMessage) -> TranscriptItem {
    TranscriptItem {
        seq,
        kind: "assistant".to_owned(),
        text: Some(message.text.clone()),
        reasoning: (!message.reasoning.is_empty()).then(|| message.reasoning.clone()),
        tool: None,
        turn_id: message.turn_id.clone(),
        at,
        partial: message.partial,
        kept: Vec::new(),
    }
}

/// What a rewind does not undo, with each attempt's word (TR-47).
pub(crate) fn kept(attempts: &[&Attempt], in_flight: &InFlight) -> Vec<KeptEffect> {
    attempts
        .iter()
        .map(|attempt| KeptEffect {
            attempt_id: attempt.identity.attempt_id.clone(),
            tool: attempt.identity.canonical_tool.clone(),
            subject: attempt.subject.clone(),
            state: attempt_word(attempt, in_flight).to_owned(),
        })
        .collect()
}

/// The messages from that place in the log on, without their calls.
pub(crate) fn messages_since(
    session: &Session,
    in_flight: &InFlight,
    seq: u64,
) -> Vec<TranscriptItem> {
    let mut messages: Vec<TranscriptItem> = session
        .items
        .iter()
        .rev()
        .take_while(|item| item.seq() >= seq)
        .filter_map(|item| match item {
            // It is told as a call.
            Item::Retry { .. } => None,
            Item::Assistant { seq, at, message } => Some(assistant_view(*seq, *at, message)),
            Item::User { .. }
            | Item::Note { .. }
            | Item::Compacted { .. }
            | Item::Rewound { .. } => {
                item_views(session, item, in_flight, &|_| ToolView::default())
                    .into_iter()
                    .next()
            }
        })
        .collect();
    messages.reverse();
    messages
}

/// The question is about the very call that the attempt ran.
pub(crate) fn is_same_call(prompt: &PromptAsked, attempt: &Attempt) -> bool {
    prompt.tool == attempt.identity.canonical_tool
        && prompt.argument_digest == attempt.identity.argument_digest
}

/// TR-46: the earlier attempt as it is now.
fn earlier_view(session: &Session, prompt: &PromptAsked, in_flight: &InFlight) -> Option<Earlier> {
    let attempt = session.attempt(prompt.earlier.as_ref()?)?;
    let result = attempt.result.as_ref().or(attempt.late.as_ref());
    Some(Earlier {
        attempt_id: attempt.identity.attempt_id.clone(),
        call_id: attempt.identity.call_id.clone(),
        tool: attempt.identity.canonical_tool.clone(),
        subject: attempt.subject.clone(),
        same_call: is_same_call(prompt, attempt),
        state: attempt_word(attempt, in_flight).to_owned(),
        started_at: attempt.started_at,
        ended_at: if attempt.state.is_by_person() {
            attempt.resolved_at
        } else {
            attempt.finished_at
        },
        exit_code: result
            .and_then(|result| result.exit.as_ref())
            .and_then(|exit| exit.code),
        outcome: repeat::outcome(attempt, in_flight),
    })
}

/// A question as it is asked.
pub(crate) fn prompt_view(
    session: &Session,
    prompt: &PromptAsked,
    in_flight: &InFlight,
) -> PendingPrompt {
    PendingPrompt {
        prompt_id: prompt.prompt_id.clone(),
        kind: prompt.prompt.clone(),
        turn_id: prompt.turn_id.clone(),
        approval: Approval {
            id: prompt.prompt_id.clone(),
            tool: prompt.tool.clone(),
            subject: prompt.subject.clone(),
            diff: prompt.diff.clone(),
            generation: prompt.generation,
            scopes: prompt.scopes.clone(),
            call_id: prompt.call_id.clone(),
            reason: prompt.reason.clone(),
            earlier: earlier_view(session, prompt, in_flight),
        },
    }
}

/// Title for display: a person's, or the beginning of the first message.
pub(crate) fn title(session: &Session) -> String {
    if !session.title.is_empty() {
        return session.title.clone();
    }
    session
        .items
        .iter()
        .find_map(|item| match item {
            Item::User { text, .. } => Some(text),
            Item::Note { .. }
            | Item::Assistant { .. }
            | Item::Retry { .. }
            | Item::Compacted { .. }
            | Item::Rewound { .. } => None,
        })
        .map(|text| {
            let line = text.lines().next().unwrap_or_default();
            let mut title: String = line.chars().take(60).collect();
            if line.chars().count() > 60 {
                title.push('…');
            }
            title
        })
        .unwrap_or_default()
}
