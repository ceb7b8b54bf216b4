//! One command, from its request to its receipt.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_domain::recovery::process::{ExitReceipt, Straggler};
use holdfast_supervisor::{
    Attachment, HostIdentity, OnHostLoss, PROTOCOL, Progress, Request, SUPPORTED, SupervisorError,
    Target, launch, prepare, remove, started_by, verify_output,
};

use super::environment::{command_environment, set};
use super::finish::{finish_read_only, finish_shell, printed_so_far};
use super::program::Shell;
use crate::context::Context;
use crate::error::ToolError;
use crate::outcome::{Background, ToolOutcome};
use crate::sandbox::{Launch, Sandbox, quiet_environment};
use crate::text::Pieces;
use crate::workspace::Workspace;

/// After a stop the supervisor answers within its grace and its own bound; what has no receipt by
/// then is unknown, and its receipt is found later (TR-10).
const STOP_PATIENCE: Duration = Duration::from_secs(15);

/// Between two looks whether the start is claimed.
const START_LOOK: Duration = Duration::from_millis(5);

/// What a model is told of every job.
const JOB_WORDS: &str = "[it runs on, also after this turn; its outcome is not known yet. job_output \
                         shows what it prints and how it ended, job_stop ends it; its end is told \
                         with the next message]\n";

/// What is to be run.
pub(crate) struct Order<'a> {
    pub(crate) command: &'a str,
    /// Seconds; `None`: the context's.
    pub(crate) timeout_s: Option<u64>,
    /// TR-50: it is not waited for.
    pub(crate) background: bool,
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
    // Nobody waits for a job: it ends by itself, or at the limit that its call names.
    let timeout = match (order.timeout_s, order.background) {
        (Some(seconds), _) => Some(Duration::from_secs(seconds)),
        (None, true) => None,
        (None, false) => Some(context.shell_timeout),
    };
    Ok(Request {
        protocol: PROTOCOL,
        attempt_id: context.attempt_id.clone(),
        argument_digest: context.argument_digest.clone(),
        program,
        args,
        cwd: folder.to_path_buf(),
        env: environment,
        timeout_ms: timeout.map(milliseconds),
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
    let leave = may_leave(order, effects, context);
    tokio::pin!(leave);
    loop {
        let next = match deadline {
            None => tokio::select! {
                next = attachment.next() => next,
                by_person = &mut leave => {
                    return background(effects, by_person, attachment.offset(), context).await;
                }
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
            Ok(Progress::Exited(_)) if order.background && deadline.is_none() => {
                return background(effects, false, attachment.offset(), context).await;
            }
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

/// Waits until the command is to go on as a job, and has been started: before that nobody knows
/// whether it will. Answers whether a person wants it.
async fn may_leave(order: &Order<'_>, effects: &Path, context: &Context) -> bool {
    if order.sandbox.is_some() {
        // What only looks is waited for.
        return std::future::pending().await;
    }
    if !order.background {
        context.detach.cancelled().await;
    }
    while started_by(effects).is_none() {
        tokio::time::sleep(START_LOOK).await;
    }
    !order.background
}

/// The answer of a call whose command goes on. Of one that was waited for, what it printed so far
/// is part of the answer.
async fn background(effects: &Path, by_person: bool, told: u64, context: &Context) -> ToolOutcome {
    let id = &context.attempt_id;
    let text = if by_person {
        let file = effects.join(holdfast_supervisor::folder::OUTPUT);
        let read = tokio::task::spawn_blocking(move || printed_so_far(&file, told));
        let so_far = read.await.unwrap_or_default();
        format!(
            "{so_far}[the person moved this command to the background while it ran: it goes on as \
             job {id}, and its time limit stays]\n{JOB_WORDS}"
        )
    } else {
        format!("[started as job {id}]\n{JOB_WORDS}")
    };
    let mut outcome = ToolOutcome::bare(AttemptState::Running, text);
    outcome.background = Some(Background { by_person, told });
    outcome
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
