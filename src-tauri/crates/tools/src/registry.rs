//! All tools by name: their descriptions, the checks before a call, the call.
//!
//! Guarantees: what `prepare` refuses never ran and needs no receipt (TR-04); `execute` runs what
//! was prepared and nothing else, and always answers with an outcome.

use std::sync::Arc;
use std::time::{Duration, Instant};

use holdfast_domain::canonical::{check_arguments, digest};
use holdfast_domain::recovery::file::FileIntent;
use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_domain::recovery::restart::{JOB_SCOPE, JOB_STOP};
use holdfast_domain::transcript::outbound::ToolSpec;
use serde_json::Value;

use crate::arguments::{self, Method, bounded};
use crate::brought::BroughtTool;
use crate::context::Context;
use crate::error::{Refusal, ToolError};
use crate::fetch;
use crate::file::aftermath::done;
use crate::file::plan::Plan;
use crate::file::publish::Publication;
use crate::file::{list, plan, read};
use crate::jobs;
use crate::outcome::ToolOutcome;
use crate::prepared::{Action, Prepared, ToolKind};
use crate::sandbox::{Sandbox, SandboxConfig};
use crate::search::{GlobSearch, GrepSearch};
use crate::shell;
use crate::shell::handover::hands_over;
use crate::shell::program::Shell;
use crate::spec;
use crate::verifier::{FileVerifier, Verifier};
use crate::workspace::Workspace;

/// Bounds that a host may set.
#[derive(Debug, Clone)]
pub struct RegistryConfig {
    /// For a whole fetch; 30 s by default.
    pub fetch_time: Duration,
    /// Bytes of a fetched body; 1 MiB by default.
    pub fetch_body: usize,
    /// For read-only commands (TR-21); `None` refuses them, and is the default.
    pub sandbox: Option<SandboxConfig>,
    /// Tools of the host's own, behind the built-in ones; none by default.
    pub brought: Vec<Arc<dyn BroughtTool>>,
}

impl Default for RegistryConfig {
    fn default() -> Self {
        Self {
            fetch_time: Duration::from_secs(30),
            fetch_body: 1024 * 1024,
            sandbox: None,
            brought: Vec::new(),
        }
    }
}

/// The tools of a host.
#[derive(Debug)]
pub struct Registry {
    config: RegistryConfig,
    sandbox: Arc<Sandbox>,
    specs: Vec<ToolSpec>,
}

impl Registry {
    /// All tools.
    ///
    /// # Errors
    /// `internal`, when a built-in description can't be read, or two tools have one name.
    pub fn new(config: RegistryConfig) -> Result<Self, ToolError> {
        let mut specs = spec::all()?;
        for tool in &config.brought {
            let spec = tool.spec();
            if specs.iter().any(|other| other.name == spec.name) {
                return Err(ToolError::Internal(format!("two tools {}", spec.name)));
            }
            specs.push(spec);
        }
        Ok(Self {
            sandbox: Arc::new(Sandbox::new(config.sandbox.clone())),
            config,
            specs,
        })
    }

    /// What a model is told; the same order and bytes always.
    pub fn specs(&self) -> &[ToolSpec] {
        &self.specs
    }

    /// TR-21: whether read-only commands can be run here. Blocking: the first call tries it.
    ///
    /// # Errors
    /// `sandbox_unavailable`: why not.
    pub fn check_sandbox(&self) -> Result<(), Refusal> {
        self.sandbox.ready()?;
        Ok(())
    }

    /// TR-04: raw checks, schema, target. Blocking: reads the target of a file write, and the first
    /// read-only command waits for the sandbox's probe.
    ///
    /// # Errors
    /// Why the call never starts. Nothing was done.
    pub fn prepare(
        &self,
        name: &str,
        raw_arguments: &str,
        workspace: &Workspace,
    ) -> Result<Prepared, Refusal> {
        if let Some(tool) = self.brought(name) {
            return Ok(prepare_brought(tool, raw_arguments)?);
        }
        let prepared = prepare(name, raw_arguments, workspace)?;
        if prepared.read_only && prepared.kind == ToolKind::Shell {
            // TR-21: without a sandbox it never becomes an attempt.
            self.sandbox.ready()?;
        }
        Ok(prepared)
    }

    fn brought(&self, name: &str) -> Option<&Arc<dyn BroughtTool>> {
        self.config
            .brought
            .iter()
            .find(|tool| tool.spec().name == name)
    }

    /// A tool of that name is here.
    pub fn has(&self, name: &str) -> bool {
        self.specs.iter().any(|spec| spec.name == name)
    }

    /// A tool of the host's own which may have effects.
    pub fn brings_mutating(&self, name: &str) -> bool {
        self.brought(name).is_some_and(|tool| !tool.read_only())
    }

    /// TR-37: what can tell of an effect of that tool; `file` is what was recorded of a file write.
    /// `None`: nothing can, and it is never run again. A command's end comes from its exit receipt
    /// and from nothing else (SV-02), so that the shell has none.
    pub fn verifier(
        &self,
        name: &str,
        file: Option<&FileIntent>,
        workspace: &Workspace,
    ) -> Option<Arc<dyn Verifier>> {
        match (name, file) {
            ("write_file" | "edit_file", Some(intent)) => Some(Arc::new(FileVerifier {
                intent: intent.clone(),
                workspace: workspace.clone(),
            })),
            _ => self.brought(name)?.verifier(),
        }
    }

    /// Runs a prepared call to its end. A stop makes it end early, and the outcome says how.
    ///
    /// Dropping the future does not undo anything: a file's publication goes on to its end, a
    /// command goes on under its supervisor.
    pub async fn execute(
        &self,
        prepared: &Prepared,
        workspace: &Workspace,
        context: &Context,
    ) -> ToolOutcome {
        let since = Instant::now();
        let mut outcome = self.run(prepared, workspace, context).await;
        // TR-09: what reads and was stopped before it had a result did not fail.
        if prepared.read_only && outcome.code == Some(ToolError::Cancelled.code()) {
            outcome.become_cancelled();
        }
        if outcome.exit.is_some() {
            outcome
        } else {
            outcome.lasting(since.elapsed())
        }
    }

    async fn run(
        &self,
        prepared: &Prepared,
        workspace: &Workspace,
        context: &Context,
    ) -> ToolOutcome {
        match &prepared.action {
            Action::Shell {
                command,
                timeout_s,
                read_only,
                background,
            } => {
                let order = shell::run::Order {
                    command,
                    timeout_s: *timeout_s,
                    background: *background,
                    sandbox: read_only.then_some(&self.sandbox),
                };
                shell::run::run(&order, workspace, context).await
            }
            Action::Fetch { url, method } => {
                let limits = fetch::Limits {
                    time: self.config.fetch_time,
                    body: self.config.fetch_body,
                };
                outcome_of_text(fetch::fetch(url, *method, limits, &context.cancel).await)
            }
            Action::Publish { .. } => publish(prepared, workspace, context).await,
            Action::JobOutput { id, offset } => jobs::output(id, *offset, context).await,
            Action::JobStop { id } => jobs::stop(id, context).await,
            Action::Brought(tool) => tool.execute(&prepared.arguments, context).await,
            Action::ReadFile { .. }
            | Action::ListDir { .. }
            | Action::Glob(_)
            | Action::Grep(_) => look(prepared, workspace, context).await,
        }
    }
}

fn prepare(name: &str, raw: &str, workspace: &Workspace) -> Result<Prepared, ToolError> {
    let value = check_arguments(raw)?;
    let build = match name {
        "read_file" => read_file,
        "list_dir" => list_dir,
        "glob" => glob,
        "grep" => grep,
        "write_file" => write_file,
        "edit_file" => edit_file,
        "fetch" => fetch_url,
        "shell" => shell_command,
        "job_output" => job_output,
        JOB_STOP => job_stop,
        _ => return Err(ToolError::UnknownTool(name.to_owned())),
    };
    let part = build(&value, workspace)?;
    let (scope, file) = match (part.intent, &part.action) {
        (Some(intent), _) => (Some(format!("file:{}", intent.resolved_path)), Some(intent)),
        (None, Action::JobStop { id }) => (Some(format!("{JOB_SCOPE}{id}")), None),
        (None, _) => (None, None),
    };
    let handed = match &part.action {
        // In the sandbox there is nobody whom it could be handed to.
        Action::Shell {
            command,
            read_only: false,
            ..
        } => hands_over(command),
        _ => None,
    };
    Ok(Prepared {
        canonical_tool: name.to_owned(),
        argument_digest: digest(&value),
        arguments: value,
        read_only: part.read_only,
        kind: part.kind,
        resource_scope: scope,
        subject: part.subject,
        diff: part.diff,
        file,
        hands_over: handed,
        action: part.action,
    })
}

/// Tools whose calls may have effects.
pub const MUTATING_TOOLS: [&str; 4] = ["write_file", "edit_file", "shell", JOB_STOP];

/// Whether a proposed call may have effects, as far as its name and its raw arguments tell: what
/// can't be read counts as one that may. An unknown tool is refused before it could have any.
pub fn may_have_effects(name: &str, raw_arguments: &str) -> bool {
    let only_reads = || {
        check_arguments(raw_arguments).is_ok_and(|value| {
            arguments::read::<arguments::Shell>("shell", &value)
                .is_ok_and(|arguments| arguments.read_only == Some(true))
        })
    };
    MUTATING_TOOLS.contains(&name) && !(name == "shell" && only_reads())
}

fn prepare_brought(tool: &Arc<dyn BroughtTool>, raw: &str) -> Result<Prepared, ToolError> {
    let value = check_arguments(raw)?;
    let subject = tool.check(&value).map_err(ToolError::Brought)?;
    Ok(Prepared {
        canonical_tool: tool.canonical_name(),
        argument_digest: digest(&value),
        read_only: tool.read_only(),
        kind: ToolKind::Brought,
        resource_scope: tool.scope(&value),
        subject,
        diff: None,
        file: None,
        hands_over: None,
        action: Action::Brought(Arc::clone(tool)),
        arguments: value,
    })
}

/// What differs from tool to tool.
struct Part {
    kind: ToolKind,
    read_only: bool,
    subject: String,
    action: Action,
    diff: Option<String>,
    intent: Option<FileIntent>,
}

impl Part {
    fn new(kind: ToolKind, subject: String, action: Action) -> Self {
        Self {
            kind,
            read_only: matches!(kind, ToolKind::Read | ToolKind::Network),
            subject,
            action,
            diff: None,
            intent: None,
        }
    }

    fn write(plan: Plan) -> Self {
        Self {
            kind: ToolKind::Edit,
            read_only: false,
            subject: plan.place.shown(),
            action: Action::Publish {
                place: plan.place,
                content: plan.content,
            },
            diff: plan.diff,
            intent: Some(plan.intent),
        }
    }
}

/// Lines of a file that are read when no limit is given.
const LINES: u64 = 2000;

fn read_file(value: &Value, workspace: &Workspace) -> Result<Part, ToolError> {
    let arguments: arguments::ReadFile = arguments::read("read_file", value)?;
    let offset = bounded("read_file", "offset", arguments.offset, 1..=u64::MAX)?.unwrap_or(1);
    let limit = bounded("read_file", "limit", arguments.limit, 1..=100_000)?.unwrap_or(LINES);
    let place = workspace.resolve(&arguments.path)?;
    let subject = place.shown();
    let action = Action::ReadFile {
        place,
        offset,
        limit,
    };
    Ok(Part::new(ToolKind::Read, subject, action))
}

fn list_dir(value: &Value, workspace: &Workspace) -> Result<Part, ToolError> {
    let arguments: arguments::ListDir = arguments::read("list_dir", value)?;
    let place = workspace.resolve(&arguments.path)?;
    let subject = place.shown();
    Ok(Part::new(
        ToolKind::Read,
        subject,
        Action::ListDir { place },
    ))
}

fn glob(value: &Value, workspace: &Workspace) -> Result<Part, ToolError> {
    let arguments: arguments::Glob = arguments::read("glob", value)?;
    let action = Action::Glob(GlobSearch::prepare(&arguments, workspace)?);
    Ok(Part::new(ToolKind::Read, arguments.pattern, action))
}

fn grep(value: &Value, workspace: &Workspace) -> Result<Part, ToolError> {
    let arguments: arguments::Grep = arguments::read("grep", value)?;
    let action = Action::Grep(GrepSearch::prepare(&arguments, workspace)?);
    Ok(Part::new(ToolKind::Read, arguments.pattern, action))
}

fn write_file(value: &Value, workspace: &Workspace) -> Result<Part, ToolError> {
    let arguments: arguments::WriteFile = arguments::read("write_file", value)?;
    let plan = plan::write(workspace, &arguments.path, &arguments.content)?;
    Ok(Part::write(plan))
}

fn edit_file(value: &Value, workspace: &Workspace) -> Result<Part, ToolError> {
    let arguments: arguments::EditFile = arguments::read("edit_file", value)?;
    if arguments.edits.is_empty() {
        return Err(ToolError::Schema {
            tool: "edit_file",
            reason: "edits: it is empty".to_owned(),
        });
    }
    let plan = plan::edit(workspace, &arguments.path, &arguments.edits)?;
    Ok(Part::write(plan))
}

fn fetch_url(value: &Value, _workspace: &Workspace) -> Result<Part, ToolError> {
    let arguments: arguments::Fetch = arguments::read("fetch", value)?;
    let method = arguments.method.unwrap_or(Method::Get);
    let url = fetch::check(&arguments.url)?.to_string();
    let verb = match method {
        Method::Get => "GET",
        Method::Head => "HEAD",
    };
    let subject = format!("{verb} {url}");
    Ok(Part::new(
        ToolKind::Network,
        subject,
        Action::Fetch { url, method },
    ))
}

fn shell_command(value: &Value, _workspace: &Workspace) -> Result<Part, ToolError> {
    let arguments: arguments::Shell = arguments::read("shell", value)?;
    if !holdfast_supervisor::SUPPORTED {
        return Err(ToolError::UnsupportedPlatform);
    }
    let read_only = arguments.read_only == Some(true);
    if read_only && arguments.background == Some(true) {
        return Err(ToolError::Schema {
            tool: "shell",
            reason: "read_only and background can't go together: what only reads is waited for"
                .to_owned(),
        });
    }
    let wrong = |reason: &str| ToolError::Schema {
        tool: "shell",
        reason: format!("command: {reason}"),
    };
    if arguments.command.trim().is_empty() {
        return Err(wrong("it is empty"));
    }
    if arguments.command.contains('\0') {
        return Err(wrong("it contains a NUL character, which no command can"));
    }
    if let Some(reason) = Shell::of_this_system().refuses(&arguments.command) {
        return Err(wrong(reason));
    }
    let timeout_s = bounded("shell", "timeout_s", arguments.timeout_s, 1..=86_400)?;
    let subject = arguments.command.clone();
    let action = Action::Shell {
        command: arguments.command,
        timeout_s,
        read_only,
        background: arguments.background == Some(true),
    };
    Ok(Part {
        read_only,
        ..Part::new(ToolKind::Shell, subject, action)
    })
}

fn job_output(value: &Value, _workspace: &Workspace) -> Result<Part, ToolError> {
    let arguments: arguments::JobOutput = arguments::read("job_output", value)?;
    let (id, offset) = (job_id("job_output", arguments.id)?, arguments.offset);
    let action = Action::JobOutput {
        id: id.clone(),
        offset,
    };
    Ok(Part::new(ToolKind::Read, id, action))
}

fn job_stop(value: &Value, _workspace: &Workspace) -> Result<Part, ToolError> {
    let arguments: arguments::JobStop = arguments::read(JOB_STOP, value)?;
    let id = job_id(JOB_STOP, arguments.id)?;
    let action = Action::JobStop { id: id.clone() };
    Ok(Part::new(ToolKind::Job, id, action))
}

fn job_id(tool: &'static str, id: String) -> Result<String, ToolError> {
    let is_id = id.len() == 32
        && id
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if is_id {
        return Ok(id);
    }
    Err(ToolError::Schema {
        tool,
        reason: "id: it is no job's; a job's id has 32 hex digits, as it was told".to_owned(),
    })
}

fn outcome_of_text(result: Result<String, ToolError>) -> ToolOutcome {
    match result {
        Ok(text) => ToolOutcome::completed(text),
        Err(error) => ToolOutcome::failed(&error),
    }
}

/// A look at the workspace. A stop is answered at once, even when the system hangs: a look has no
/// effect to wait for.
async fn look(prepared: &Prepared, workspace: &Workspace, context: &Context) -> ToolOutcome {
    let (action, jail, cancel) = (
        prepared.action.clone(),
        workspace.clone(),
        context.cancel.clone(),
    );
    let work = tokio::task::spawn_blocking(move || {
        if cancel.is_cancelled() {
            return ToolOutcome::failed(&ToolError::Cancelled);
        }
        match &action {
            // Its own bound: a file cut in the middle is of little use.
            Action::ReadFile {
                place,
                offset,
                limit,
            } => match read::read(&jail, place, *offset, *limit) {
                Ok(text) => ToolOutcome::bare(AttemptState::Completed, text),
                Err(error) => ToolOutcome::failed(&error),
            },
            Action::ListDir { place } => outcome_of_text(list::list(&jail, place)),
            Action::Glob(search) => outcome_of_text(search.run(&jail, &cancel)),
            Action::Grep(search) => outcome_of_text(search.run(&jail, &cancel)),
            Action::Publish { .. }
            | Action::Fetch { .. }
            | Action::Shell { .. }
            | Action::JobOutput { .. }
            | Action::JobStop { .. }
            | Action::Brought(_) => {
                ToolOutcome::failed(&ToolError::Internal("not a look".to_owned()))
            }
        }
    });
    tokio::select! {
        biased;
        done = work => done.unwrap_or_else(|error| {
            ToolOutcome::failed(&ToolError::Internal(error.to_string()))
        }),
        () = context.cancel.cancelled() => ToolOutcome::failed(&ToolError::Cancelled),
    }
}

/// A write. Once begun it is waited for: a stop takes effect between its steps only (C39).
async fn publish(prepared: &Prepared, workspace: &Workspace, context: &Context) -> ToolOutcome {
    let (prepared, jail, context) = (prepared.clone(), workspace.clone(), context.clone());
    let diff = prepared.diff.clone();
    let path = prepared.subject.clone();
    let work = tokio::task::spawn_blocking(move || {
        let (Action::Publish { place, content }, Some(intent)) = (&prepared.action, &prepared.file)
        else {
            return Err(ToolError::Internal("a write without a plan".to_owned()));
        };
        Publication {
            workspace: &jail,
            place,
            intent,
            content,
            diff: prepared.diff.as_deref(),
            attempt_id: &context.attempt_id,
            effects_root: &context.effects_root,
            cancel: &context.cancel,
            checkpoint: &context.checkpoint,
        }
        .run()?;
        Ok(done(intent, &prepared.subject, content.len() as u64))
    });
    match work.await {
        Ok(Ok(text)) => {
            let mut outcome = ToolOutcome::completed(text);
            outcome.diff = diff;
            outcome
        }
        Ok(Err(error)) => {
            let mut outcome = ToolOutcome::failed(&error);
            if matches!(error, ToolError::EffectUnknown { .. }) {
                outcome.diff = diff;
            }
            outcome
        }
        // It may have stopped at any step.
        Err(error) => ToolOutcome::failed(&ToolError::EffectUnknown {
            path,
            reason: format!("the write stopped unexpectedly ({error})"),
        }),
    }
}
