//! One command, from its request to its receipt.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_domain::recovery::process::{ExitReceipt, Straggler};
use holdfast_supervisor::{
    Attachment, HostIdentity, OnHostLoss, PROTOCOL, Progress, Request, SUPPORTED, SupervisorError,
    Target, launch, prepare, remove, verify_output,
};

use super::environment::{command_environment, set};
use super::finish::{finish_read_only, finish_shell};
use super::program::Shell;
use crate::context::Context;
use crate::error::ToolError;
use crate::outcome::ToolOutcome;
use crate::sandbox::{Launch, Sandbox, quiet_environment};
use crate::text::Pieces;
use crate::workspace::Workspace;

/// After a stop the supervisor answers within its grace and its own bound; what has no receipt by
/// then is unknown, and its receipt is found later (TR-10).
const STOP_PATIENCE: Duration = Duration::from_secs(15);

/// What is to be run.
pub(crate) struct Order<'a> {
    pub(crate) command: &'a str,
    /// Seconds; `None`: the context's.
    pub(crate) timeout_s: Option<u64>,
    /// TR-21: the sandbox of a read-only command.
    pub(crate) sandbox: Option<&'a Arc<Sandbox>>,
}

/// Runs a command to its receipt. Stop ends the whole tree and still waits for the receipt.
pub(crate) async fn run(
    order: &Order<'_>,
    workspace: &Workspace,
    context: &Context,
) -> ToolOutcome {
    if !SUPPORTED {
        return not_started(&ToolError::UnsupportedPlatform);
    }
    if context.cancel.is_cancelled() {
        return not_started(&ToolError::Cancelled);
    }
    let launched = match order.sandbox {
        Some(sandbox) => match launch_in(sandbox, workspace, order.command).await {
            Ok(launched) => Some(launched),
            Err(error) => return not_started(&error),
        },
        None => None,
    };
    let started = request(order, launched, workspace.root(), context)
        .and_then(|request| start(&request, context));
    let mut outcome = match started {
        Ok((effects, attachment)) => follow(order, &effects, attachment, context).await,
        Err(error) => not_started(&ToolError::Supervisor(error.to_string())),
    };
    if order.sandbox.is_some() && outcome.state == AttemptState::Unknown {
        // TR-14: whatever became of it, it had no effect.
        outcome.become_cancelled();
    }
    outcome
}

/// The sandbox looks at files, so not on a thread of the runtime.
async fn launch_in(
    sandbox: &Arc<Sandbox>,
    workspace: &Workspace,
    command: &str,
) -> Result<Launch, ToolError> {
    let (sandbox, workspace) = (Arc::clone(sandbox), workspace.clone());
    let command = ["/bin/sh", "-c", command].map(OsString::from);
    tokio::task::spawn_blocking(move || sandbox.launch(&workspace, &command))
        .await
        .unwrap_or_else(|error| Err(ToolError::Internal(error.to_string())))
}

fn request(
    order: &Order<'_>,
    launched: Option<Launch>,
    folder: &Path,
    context: &Context,
) -> Result<Request, SupervisorError> {
    let mut environment = context.environment.clone();
    for (name, value) in command_environment([], &[], &[]) {
        set(&mut environment, &name.to_string_lossy(), &value);
    }
    if cfg!(unix) {
        set(&mut environment, "PWD", folder.as_os_str());
    }
    set(
        &mut environment,
        "HOLDFAST_IDEMPOTENCY_KEY",
        OsStr::new(&context.idempotency_key),
    );
    let mut on_host_loss = context.on_host_loss;
    let (program, args) = match launched {
        Some(launch) => {
            quiet_environment(&mut environment, &launch);
            // Nobody would read its result.
            on_host_loss = OnHostLoss::Stop;
            (launch.program.into(), launch.arguments)
        }
        None => {
            let shell = Shell::of_this_system();
            (shell.program(), shell.arguments(order.command))
        }
    };
    let timeout = order
        .timeout_s
        .map_or(context.shell_timeout, Duration::from_secs);
    Ok(Request {
        protocol: PROTOCOL,
        attempt_id: context.attempt_id.clone(),
        argument_digest: context.argument_digest.clone(),
        program,
        args,
        cwd: folder.to_path_buf(),
        env: environment,
        timeout_ms: Some(milliseconds(timeout)),
        grace_ms: milliseconds(context.shell_grace),
        output_cap: context.output_cap,
        on_host_loss,
        host: HostIdentity::current()?,
        boot_id: context.boot_id.clone(),
        runtime_folder: context.runtime_folder.clone(),
    })
}

fn start(request: &Request, context: &Context) -> Result<(PathBuf, Attachment), SupervisorError> {
    let effects = prepare(&context.effects_root, request)?;
    context.checkpoint.reach("request_written");
    let child = launch(&context.supervisor_binary, &effects).inspect_err(|_| {
        // Nothing runs and nothing can: the folder would only be found later as an open attempt.
        // If it stays, recovery fences it.
        let _ = remove(&effects);
    })?;
    let target = Target {
        folder: effects.clone(),
        attempt_id: request.attempt_id.clone(),
        argument_digest: request.argument_digest.clone(),
        boot_id: request.boot_id.clone(),
        runtime_folder: request.runtime_folder.clone(),
    };
    Ok((effects, Attachment::attach(target, Some(child), 0)))
}

async fn follow(
    order: &Order<'_>,
    effects: &Path,
    mut attachment: Attachment,
    context: &Context,
) -> ToolOutcome {
    let mut pieces = Pieces::default();
    let mut deadline = None;
    loop {
        let next = match deadline {
            None => tokio::select! {
                next = attachment.next() => next,
                () = context.cancel.cancelled() => {
                    if let Err(error) = attachment.stop() {
                        return unknown(&format!("it could not be told to stop: {error}"), Vec::new());
                    }
                    deadline = Some(tokio::time::Instant::now() + STOP_PATIENCE + context.shell_grace);
                    continue;
                }
            },
            Some(deadline) => match tokio::time::timeout_at(deadline, attachment.next()).await {
                Ok(next) => next,
                Err(_) => return unknown("it was told to stop and has not ended yet", Vec::new()),
            },
        };
        match next {
            Ok(Progress::Output(bytes)) => context.progress.send(&pieces.push(&bytes)),
            Ok(Progress::Exited(receipt)) => {
                return finish(order, effects, receipt).await;
            }
            Ok(Progress::NotStarted) => {
                return not_started(&ToolError::Supervisor(
                    "its supervisor ended before it claimed the start".to_owned(),
                ));
            }
            Ok(Progress::Lost { reason, stragglers }) => return unknown(&reason, stragglers),
            // Both come only after the receipt, which ends this loop.
            Ok(Progress::Gone | Progress::StopFailed) => {
                return unknown("its end came without a receipt", Vec::new());
            }
            Err(error) => return unknown(&error.to_string(), Vec::new()),
        }
    }
}

/// The whole output is read for its digest, so not on a thread of the runtime.
async fn finish(order: &Order<'_>, effects: &Path, receipt: ExitReceipt) -> ToolOutcome {
    let (command, effects) = (order.command.to_owned(), effects.to_path_buf());
    let read_only = order.sandbox.is_some();
    let work = tokio::task::spawn_blocking(move || {
        let is_whole = verify_output(&effects, &receipt).is_ok_and(|is_whole| is_whole);
        let output = effects.join(holdfast_supervisor::folder::OUTPUT);
        if read_only {
            finish_read_only(&command, &receipt, &output, !is_whole)
        } else {
            finish_shell(&command, &receipt, &output, !is_whole)
        }
    });
    match work.await {
        Ok(outcome) => outcome,
        // The receipt is still in its folder.
        Err(error) => unknown(
            &format!("its result could not be read: {error}"),
            Vec::new(),
        ),
    }
}

fn not_started(error: &ToolError) -> ToolOutcome {
    let mut outcome = ToolOutcome::failed(error);
    outcome.state = AttemptState::NotStarted;
    outcome
}

fn unknown(reason: &str, stragglers: Vec<Straggler>) -> ToolOutcome {
    let alive: Vec<String> = stragglers
        .iter()
        .map(|process| format!("{} (pid {})", process.name, process.pid))
        .collect();
    let mut text = format!("[the outcome of the command is unknown: {reason}");
    if !alive.is_empty() {
        text.push_str(&format!("; still alive: {}", alive.join(", ")));
    }
    text.push_str("; look at the outside state before repeating]\n");
    let mut outcome = ToolOutcome::bare(AttemptState::Unknown, text);
    outcome.code = Some("unknown");
    reason.clone_into(&mut outcome.effect_summary);
    outcome.stragglers = stragglers;
    outcome
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
