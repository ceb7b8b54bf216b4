//! `holdfast sessions`: reads without any lock, also beside a host that holds the session. What that
//! one runs is asked of it; without an answer the log is read, where it looks unknown.

use std::io::Write;
use std::path::PathBuf;

use holdfast_api::SessionHost;
use holdfast_api::session::SessionsQuery;
use holdfast_api::transcript::TranscriptItem;

use crate::arguments::{Sessions, SessionsAction};
use crate::{data, holder};

pub(crate) async fn sessions(folder: Option<PathBuf>, options: Sessions) -> anyhow::Result<u8> {
    let host = data::host(data::folder(folder)?, None)?;
    let mut out = std::io::stdout();
    match options.action {
        SessionsAction::List { query, json } => {
            let query = SessionsQuery {
                query,
                cursor: None,
                limit: Some(200),
            };
            let page = host.list_sessions(&query).await?;
            if json {
                writeln!(out, "{}", serde_json::to_string(&page)?)?;
            } else {
                for row in &page.items {
                    writeln!(
                        out,
                        "{}  {}  {}{}{}",
                        row.session_id,
                        if row.title.is_empty() {
                            "(untitled)"
                        } else {
                            &row.title
                        },
                        row.state.turn_status,
                        if row.state.pending_prompt {
                            "  waits for an answer"
                        } else {
                            ""
                        },
                        match row.state.unresolved {
                            0 => String::new(),
                            n => format!("  {n} unknown"),
                        },
                    )?;
                }
            }
        }
        SessionsAction::Show { session, json } => {
            let items = match holder::transcript(&host, &session).await {
                Some(items) => items,
                None => host.read_transcript(&session)?,
            };
            if json {
                writeln!(out, "{}", serde_json::to_string(&items)?)?;
            } else {
                for item in &items {
                    show(&mut out, item)?;
                }
            }
        }
        SessionsAction::Export { session, json: _ } => {
            for item in host.read_transcript(&session)? {
                writeln!(out, "{}", serde_json::to_string(&item)?)?;
            }
        }
    }
    Ok(0)
}

fn show(out: &mut impl Write, item: &TranscriptItem) -> std::io::Result<()> {
    if let Some(tool) = &item.tool {
        return writeln!(out, "[{}] {} {}", tool.state, tool.name, tool.args);
    }
    let who = match item.kind.as_str() {
        "user" => "you",
        "assistant" => "holdfast",
        other => other,
    };
    writeln!(out, "{who}: {}", item.text.as_deref().unwrap_or_default())
}
