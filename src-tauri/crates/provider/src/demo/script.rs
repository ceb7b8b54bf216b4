//! What the demo model says and does next.

use holdfast_domain::transcript::outbound::OutboundMessage;
use holdfast_domain::transcript::view::SUMMARY_REQUEST;
use serde_json::{Value, json};

use super::NAME;
use super::facts::{Answer, Facts, Unknown, is_host_note};
use super::sample::{BUG, CHECK, CHECK_COMMAND, FIX, PROGRAM, TASK};
use crate::client::{ModelCall, ModelReply, Usage};

/// How long the check may take, in seconds.
const CHECK_LIMIT_S: u32 = 60;

/// Most edits that the tool refuses before the model gives up.
const MOST_FAILED_EDITS: usize = 2;

/// The next step: thought, words and calls.
struct Turn {
    reasoning: String,
    text: String,
    calls: Vec<(&'static str, Value)>,
}

impl Turn {
    fn say(reasoning: &str, text: impl Into<String>) -> Self {
        Self {
            reasoning: reasoning.to_owned(),
            text: text.into(),
            calls: Vec::new(),
        }
    }

    fn call(mut self, tool: &'static str, arguments: Value) -> Self {
        self.calls.push((tool, arguments));
        self
    }
}

/// The reply to these messages.
#[must_use]
pub fn reply(messages: &[OutboundMessage]) -> ModelReply {
    let turn = match task(messages) {
        _ if asks_for_summary(messages) => no_summary(),
        Some(task) => next(&Facts::read(&messages[task..])),
        None => introduction(),
    };
    let earlier: usize = messages.iter().map(calls_of).sum();
    let calls: Vec<ModelCall> = turn
        .calls
        .into_iter()
        .enumerate()
        .map(|(index, (name, arguments))| ModelCall {
            provider_id: format!("demo-{}", earlier + index + 1),
            name: name.to_owned(),
            arguments: arguments.to_string(),
        })
        .collect();
    let finish_reason = if calls.is_empty() {
        "stop"
    } else {
        "tool_calls"
    };
    let said = turn.text.len() + turn.reasoning.len();
    let asked: usize = messages.iter().map(size_of).sum();
    ModelReply {
        usage: Some(Usage {
            input: tokens(asked),
            output: tokens(said),
            cached_input: 0,
            reasoning: tokens(turn.reasoning.len()),
        }),
        text: turn.text,
        reasoning: turn.reasoning,
        calls,
        finish_reason: finish_reason.to_owned(),
        model: NAME.to_owned(),
    }
}

/// A summary of the conversation is asked for (`domain`'s `summary_request`).
fn asks_for_summary(messages: &[OutboundMessage]) -> bool {
    messages.last().is_some_and(
        |last| matches!(last, OutboundMessage::User { text } if text == SUMMARY_REQUEST),
    )
}

/// A script understands nothing of what was said, and says so.
fn no_summary() -> Turn {
    Turn::say(
        "",
        "The scripted model `demo` can't summarise. What was said before this is no longer before \
         it; ask it for its task anew.",
    )
}

/// Where the task begins: the last message of a person that asks for it, or an earlier one when the
/// last one only says to go on.
fn task(messages: &[OutboundMessage]) -> Option<usize> {
    let asks = |text: &str| {
        let text = text.to_lowercase();
        text.contains("greeting") || text.contains("问候") || text.contains(&TASK.to_lowercase())
    };
    let goes_on = |text: &str| {
        let text = text.to_lowercase();
        ["continue", "go on", "proceed", "try again", "继续"]
            .iter()
            .any(|phrase| text.contains(phrase))
    };
    let mut persons = messages
        .iter()
        .enumerate()
        .rev()
        .filter_map(|(at, message)| match message {
            OutboundMessage::User { text } if !is_host_note(text) => Some((at, text)),
            OutboundMessage::User { .. }
            | OutboundMessage::System { .. }
            | OutboundMessage::Assistant { .. }
            | OutboundMessage::Tool { .. } => None,
        });
    let (at, last) = persons.next()?;
    if asks(last) {
        return Some(at);
    }
    if !goes_on(last) {
        return None;
    }
    persons.find(|(_, text)| asks(text)).map(|(at, _)| at)
}

fn introduction() -> Turn {
    Turn::say(
        "This is not the task that I have a script for.",
        format!(
            "I am `demo`, a scripted model that needs no key and no network. I do not understand \
             text; I can do one thing: in the sample project I find and fix the bug in the greeting \
             program, with real tools. Ask me: \"{TASK}\" For anything else, set up a provider."
        ),
    )
}

fn next(facts: &Facts) -> Turn {
    if let Some(unknown) = &facts.unknown {
        return react_to_unknown(facts, unknown);
    }
    if let Some((what, answer)) = &facts.obstacle {
        return react(facts, what, *answer);
    }
    let Some(listing) = &facts.listing else {
        return Turn::say(
            "The check fails. First I look at what is here.",
            "I look at the project first.",
        )
        .call("list_dir", json!({ "path": "." }));
    };
    if !listing.contains(PROGRAM) || !listing.contains(CHECK) {
        return Turn::say(
            "The files that my script is about are not here.",
            format!(
                "This folder does not hold {PROGRAM} and {CHECK}. I am a scripted model and know \
                 only the sample project, so I stop here. Nothing was changed."
            ),
        );
    }
    let Some(program) = &facts.program else {
        return read(facts);
    };
    match facts.checked {
        None => run_check(facts),
        Some(Answer::Done) => summary(facts),
        Some(_) if facts.edited == 0 && program.contains(BUG) => edit(),
        Some(_) => {
            let why = if facts.edited > 0 {
                "although the bug that I know is corrected".to_owned()
            } else {
                format!("and {PROGRAM} does not hold the bug that I know")
            };
            Turn::say(
                "The check fails, and not because of the bug that I know.",
                format!(
                    "`{CHECK_COMMAND}` still fails, {why}. I stop here: a scripted model must not \
                     guess. The output above says what is wrong."
                ),
            )
        }
    }
}

fn read(facts: &Facts) -> Turn {
    if facts.edits_failed >= MOST_FAILED_EDITS {
        return Turn::say(
            "The edit was refused twice.",
            format!(
                "I could not edit {PROGRAM}: the tool refused twice. I stop here; the file is as \
                 the tool left it, and its answer above says why."
            ),
        );
    }
    if facts.edits_failed > 0 {
        return Turn::say(
            "The edit did not fit. The file may have changed since I read it.",
            format!("The edit did not fit, so I read {PROGRAM} again before I try once more."),
        )
        .call("read_file", json!({ "path": PROGRAM }));
    }
    let turn = Turn::say(
        "A program and its check. I read both; they do not depend on each other.",
        format!("I read {PROGRAM} and {CHECK}."),
    )
    .call("read_file", json!({ "path": PROGRAM }));
    if facts.check_read {
        return turn;
    }
    turn.call("read_file", json!({ "path": CHECK }))
}

fn run_check(facts: &Facts) -> Turn {
    let first = facts.edited == 0 && facts.edits_failed == 0 && !facts.edit_uncertain;
    let (reasoning, text) = if first {
        (
            "The program looks almost right. The check shows what happens.",
            format!("I run `{CHECK_COMMAND}` to see it fail."),
        )
    } else {
        (
            "Only the check can say whether the program is right now.",
            format!("I run `{CHECK_COMMAND}` again."),
        )
    };
    Turn::say(reasoning, text).call(
        "shell",
        json!({ "command": CHECK_COMMAND, "timeout_s": CHECK_LIMIT_S }),
    )
}

fn edit() -> Turn {
    Turn::say(
        "Every greeting lacks its name. The program sets `name` and prints `nmae`, which is empty.",
        format!(
            "The greeting lacks its name: {PROGRAM} prints `$nmae`, but the variable is `name`. I \
             correct that line."
        ),
    )
    .call(
        "edit_file",
        json!({ "path": PROGRAM, "edits": [{ "old_text": BUG, "new_text": FIX }] }),
    )
}

fn summary(facts: &Facts) -> Turn {
    if facts.edited == 0 && facts.edit_uncertain {
        return Turn::say(
            "The check passes, but I do not know whose work that is.",
            format!(
                "`{CHECK_COMMAND}` passes now. Whether my edit did it I can't say, because its \
                 outcome was never known to me."
            ),
        );
    }
    if facts.edited == 0 {
        return Turn::say(
            "Nothing to do.",
            format!("`{CHECK_COMMAND}` passes already. I changed nothing."),
        );
    }
    Turn::say(
        "The check passes. That is the proof.",
        format!(
            "Done. {PROGRAM} printed `$nmae` instead of `$name`; one line is changed, and \
             `{CHECK_COMMAND}` passes."
        ),
    )
}

/// A call did not go through.
fn react(facts: &Facts, what: &str, answer: Answer) -> Turn {
    let said = &facts.obstacle_text;
    match answer {
        Answer::Blocked => Turn::say(
            "An earlier effect is unresolved. Another call would be refused as well.",
            format!(
                "{what} was blocked, because the outcome of an earlier call is unknown. I stop \
                 here and try nothing else. Please inspect that call and confirm or dismiss it; \
                 then tell me to continue."
            ),
        ),
        Answer::Denied => Turn::say(
            "The answer was no. I respect it and look for no way around.",
            format!("{what} was not allowed, so I stop here. Tell me to continue if I may."),
        ),
        Answer::NotStarted => Turn::say(
            "That call was never started.",
            format!("{what} was not started, so I stop here. Tell me to continue if I may."),
        ),
        Answer::Stopped => Turn::say(
            "The command did not end by itself. A part of it may have happened.",
            format!(
                "{what} did not end by itself, and a part of it may have happened. I stop here and \
                 do not run it again by myself. Tell me to continue if I may."
            ),
        ),
        Answer::Error | Answer::Done | Answer::Failed | Answer::Unknown => Turn::say(
            "The tool could not do it.",
            format!("{what} did not work: {said}. I stop here."),
        ),
    }
}

/// A call of unknown outcome is never repeated. After an edit, reading is safe and shows what is in
/// the file now.
fn react_to_unknown(facts: &Facts, unknown: &Unknown) -> Turn {
    let what = &unknown.what;
    if !unknown.is_edit {
        return Turn::say(
            "Nobody knows whether the command ran. Running it again could do it twice.",
            format!(
                "The outcome of {what} is unknown, so I do not run it again, and I stop here. \
                 Please inspect it and confirm or dismiss it; then tell me to continue."
            ),
        );
    }
    let state = match &facts.program {
        None if facts.obstacle.is_none() => {
            return Turn::say(
                "Nobody knows whether the edit was made. Reading changes nothing, so I look.",
                format!("The outcome of {what} is unknown. I do not repeat it; I read the file."),
            )
            .call("read_file", json!({ "path": PROGRAM }));
        }
        Some(program) if program.contains(FIX) => "the file holds the corrected line",
        Some(program) if program.contains(BUG) => "the file still holds the wrong line",
        Some(_) | None => "I could not see the line in question",
    };
    Turn::say(
        "I have seen the file. To say what happened is up to the person.",
        format!(
            "The outcome of {what} is unknown; as read now, {state}. I stop here. Please inspect \
             the call and confirm or dismiss it; then tell me to continue."
        ),
    )
}

fn calls_of(message: &OutboundMessage) -> usize {
    match message {
        OutboundMessage::Assistant { calls, .. } => calls.len(),
        OutboundMessage::System { .. }
        | OutboundMessage::User { .. }
        | OutboundMessage::Tool { .. } => 0,
    }
}

fn size_of(message: &OutboundMessage) -> usize {
    match message {
        OutboundMessage::System { text }
        | OutboundMessage::User { text }
        | OutboundMessage::Tool { text, .. } => text.len(),
        OutboundMessage::Assistant {
            text,
            reasoning,
            calls,
        } => {
            let calls: usize = calls.iter().map(|call| call.arguments.len()).sum();
            text.len() + reasoning.as_ref().map_or(0, String::len) + calls
        }
    }
}

/// A rough count: four bytes each.
fn tokens(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(4)).unwrap_or(u64::MAX)
}
