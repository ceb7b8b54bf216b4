//! `holdfast run "task"`: one task in the terminal.
//!
//! Exit code 0: done; 2: something needs a person (an unknown outcome, a question without a
//! terminal, a repetition that was refused because nobody could be asked); 1: otherwise.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;

use anyhow::Context;
use holdfast_api::SessionHost;
use holdfast_api::event::{Event, Frame};
use holdfast_api::host::Selector;
use holdfast_api::session::{Approve, Cancel, CreateSession, PendingPrompt, Submit};
use holdfast_controller::Host;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::arguments::{Output, Run};
use crate::{NEEDS_PERSON, data, logging};

/// How the task ended.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Outcome {
    session_id: String,
    status: String,
    code: String,
    message: String,
    text: String,
    unresolved: u64,
    pending_prompt: bool,
    /// Calls refused because they may repeat an earlier effect, and nobody could be asked (TR-46).
    repeats_refused: u64,
}

pub(crate) async fn run(folder: Option<PathBuf>, options: Run) -> anyhow::Result<u8> {
    let folder = data::folder(folder)?;
    let _logs = logging::start(&folder);
    let workspace = match options.workspace {
        Some(workspace) => workspace,
        None => std::env::current_dir().context("the present folder can't be read")?,
    };
    let workspace = std::path::absolute(workspace)?;
    let text = options.output == Output::Text;
    let attended = text && std::io::stdin().is_terminal();
    let parts = data::parts_of_task(folder, attended)?;
    let host = parts.host;
    let stopped = CancellationToken::new();
    let _stop = stopped.clone().drop_guard();
    if let Some(socket) = parts.local {
        tokio::spawn(socket.run(host.clone(), stopped));
    }
    let created = host
        .create_session(CreateSession {
            workspace: Some(workspace.to_string_lossy().into_owned()),
            title: None,
            model: options.model,
            mode: options.mode,
        })
        .await?;
    let mut events = host
        .hub()
        .reader(false, Some(created.session_id.clone()), None);
    let selector = Selector::of(&created.session_id);
    host.submit(
        &selector,
        Submit {
            input: options.task,
            submission_id: None,
        },
    )
    .await?;
    let mut outcome = Outcome {
        session_id: created.session_id,
        ..Outcome::default()
    };
    let mut interrupts = 0;
    loop {
        let batch = tokio::select! {
            batch = events.next() => batch,
            _ = tokio::signal::ctrl_c() => {
                interrupts += 1;
                if interrupts > 1 {
                    break;
                }
                host.cancel(&selector, Cancel::default()).await?;
                continue;
            }
        };
        let mut over = false;
        for outgoing in batch {
            let Ok(frame) = serde_json::from_str::<Frame>(&outgoing.data) else {
                continue;
            };
            over |= follow(&host, &selector, frame, text, &mut outcome).await?;
        }
        if over {
            break;
        }
    }
    let status = host.status(&selector).await?;
    outcome.unresolved = status.runtime_state.map_or(0, |state| state.unresolved);
    outcome.pending_prompt = status.pending_prompt;
    host.release().await;
    finish(&outcome, text)
}

/// Takes one frame; true when the task is over, or waits for somebody who is not there.
async fn follow(
    host: &Host,
    selector: &Selector,
    frame: Frame,
    text: bool,
    outcome: &mut Outcome,
) -> anyhow::Result<bool> {
    let mut out = std::io::stdout();
    match frame.event {
        Event::Text { text: part } if text => {
            write!(out, "{part}")?;
            out.flush()?;
        }
        Event::Message { item } if item.kind == "assistant" => {
            if let Some(message) = item.text.filter(|message| !message.is_empty()) {
                if text {
                    writeln!(out)?;
                }
                outcome.text = message;
            }
        }
        Event::ToolStarted { tool } if text => {
            writeln!(out, "· {} {}", tool.name, short(&tool.args))?;
        }
        Event::ToolResult { tool } => {
            outcome.repeats_refused += u64::from(tool.code.as_deref() == Some("repeat_refused"));
            if text {
                writeln!(out, "  {} {}", tool.name, tool.state)?;
            }
        }
        Event::Retrying { message, .. } if text => writeln!(out, "  retrying: {message}")?,
        Event::ApprovalRequest { prompt } => {
            if !text || !std::io::stdin().is_terminal() {
                return Ok(true);
            }
            let answer = ask(prompt).await?;
            host.approve(selector, answer).await?;
        }
        Event::TurnDone {
            status,
            code,
            message,
        } => {
            outcome.status = status;
            outcome.code = code;
            outcome.message = message;
            return Ok(true);
        }
        _ => {}
    }
    Ok(false)
}

async fn ask(prompt: PendingPrompt) -> anyhow::Result<Approve> {
    let approval = prompt.approval;
    let for_session = approval.scopes.iter().any(|scope| scope == "session");
    let question = format!(
        "{}\n{} {} — {}. Allow? [y]es once / {}[n]o: ",
        approval.diff.as_deref().unwrap_or_default(),
        approval.tool,
        approval.subject,
        approval.reason,
        if for_session {
            "for this [s]ession / "
        } else {
            ""
        }
    );
    let line = tokio::task::spawn_blocking(move || {
        let mut out = std::io::stdout();
        write!(out, "{question}")?;
        out.flush()?;
        let mut line = String::new();
        std::io::stdin().read_line(&mut line)?;
        Ok::<_, std::io::Error>(line)
    })
    .await??;
    let answer = line.trim().to_lowercase();
    Ok(Approve {
        id: approval.id,
        generation: approval.generation,
        // "For this session" where that is not offered is no answer to what was asked.
        allow: matches!(answer.as_str(), "y" | "yes")
            || (for_session && matches!(answer.as_str(), "s" | "session")),
        scope: (for_session && answer.starts_with('s')).then(|| "session".to_owned()),
        reason: None,
    })
}

fn short(args: &serde_json::Value) -> String {
    let text = args
        .get("command")
        .or_else(|| args.get("path"))
        .or_else(|| args.get("pattern"))
        .or_else(|| args.get("url"))
        .and_then(|value| value.as_str())
        .unwrap_or_default();
    text.lines()
        .next()
        .unwrap_or_default()
        .chars()
        .take(100)
        .collect()
}

fn finish(outcome: &Outcome, text: bool) -> anyhow::Result<u8> {
    let mut out = std::io::stdout();
    let session = &outcome.session_id;
    let code = if outcome.unresolved > 0 || outcome.pending_prompt || outcome.repeats_refused > 0 {
        NEEDS_PERSON
    } else {
        u8::from(outcome.status != "completed")
    };
    if !text {
        writeln!(out, "{}", serde_json::to_string(outcome)?)?;
        return Ok(code);
    }
    if outcome.unresolved > 0 {
        writeln!(
            out,
            "\nThe outcome of {} call(s) is unknown. Look with: holdfast recovery list --session \
             {session}",
            outcome.unresolved
        )?;
    } else if outcome.pending_prompt {
        writeln!(
            out,
            "\nA call waits for your answer and there is no terminal to ask. Run with --mode \
             edits or full, or answer it through holdfast serve (session {session})."
        )?;
    } else if outcome.repeats_refused > 0 {
        writeln!(
            out,
            "\n{} call(s) would have repeated an earlier effect, and were refused because there is \
             no terminal to ask. Look at what the earlier one did, then go on through holdfast \
             serve or the window (session {session}).",
            outcome.repeats_refused
        )?;
    } else if outcome.status != "completed" {
        writeln!(
            out,
            "\nThe task ended as {}: {} [{}]",
            outcome.status, outcome.message, outcome.code
        )?;
    }
    Ok(code)
}
