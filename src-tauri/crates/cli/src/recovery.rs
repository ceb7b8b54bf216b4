//! `holdfast recovery`: the person's actions on calls whose outcome is unknown.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, bail};
use holdfast_api::recovery::{CallRecord, ToolRecoverySnapshot};
use holdfast_domain::recovery::admission::{Action, ActionRequest};

use crate::arguments::{Recovery, RecoveryAction};
use crate::holder::Holder;

pub(crate) async fn recovery(folder: Option<PathBuf>, options: Recovery) -> anyhow::Result<u8> {
    let holder = Holder::of(folder, &options.session).await?;
    let done = act(&holder, &options).await;
    holder.release().await;
    let snapshot = done?;
    let mut out = std::io::stdout();
    if options.json {
        writeln!(out, "{}", serde_json::to_string(&snapshot)?)?;
    } else if snapshot.calls.is_empty() {
        writeln!(out, "No call of this session has an unknown outcome.")?;
    } else {
        for call in &snapshot.calls {
            show(&mut out, call)?;
        }
    }
    Ok(0)
}

async fn act(holder: &Holder, options: &Recovery) -> anyhow::Result<ToolRecoverySnapshot> {
    let snapshot = holder.snapshot().await?;
    let action = match options.action {
        RecoveryAction::List => return Ok(snapshot),
        RecoveryAction::Inspect => Action::Inspect,
        RecoveryAction::Confirm => Action::Confirm,
        RecoveryAction::Reject => Action::Reject,
        RecoveryAction::Retry => Action::Retry,
        RecoveryAction::Dismiss => Action::Dismiss,
    };
    let attempt_id = match (&options.attempt, snapshot.calls.as_slice()) {
        (Some(id), _) => id.clone(),
        (None, [only]) => only.identity.attempt_id.clone(),
        (None, []) => bail!("no call of this session has an unknown outcome; nothing was changed"),
        (None, _) => bail!(
            "several calls have an unknown outcome; nothing was changed; say which with --attempt"
        ),
    };
    let inspection_id = snapshot
        .calls
        .iter()
        .find(|call| call.identity.attempt_id == attempt_id)
        .map(|call| call.inspection_id.clone())
        .unwrap_or_default();
    let request = ActionRequest {
        session_path: snapshot.session_path,
        runtime_epoch: snapshot.runtime_epoch,
        revision: snapshot.revision,
        attempt_id,
        inspection_id,
        action,
    };
    let answered = holder
        .resolve(request)
        .await
        .context("the action was not done")?;
    if action == Action::Retry {
        // It runs behind its answer (TR-36), and where this program holds the session, its end
        // would stop it.
        holder.until_idle().await?;
        return holder.snapshot().await;
    }
    Ok(answered)
}

fn show(out: &mut impl Write, call: &CallRecord) -> std::io::Result<()> {
    writeln!(
        out,
        "{}  {} {}  {}",
        call.identity.attempt_id,
        call.identity.canonical_tool,
        call.subject,
        call.state.as_str()
    )?;
    if !call.effect_summary.is_empty() {
        writeln!(out, "  {}", call.effect_summary)?;
    }
    if let Some(arguments) = &call.arguments {
        writeln!(out, "  arguments: {arguments}")?;
    }
    if !call.inspection_summary.is_empty() {
        writeln!(out, "  inspected: {}", call.inspection_summary)?;
    }
    Ok(())
}
