//! The model's tools: reading, searching, editing, fetching and running commands, the jail that
//! file tools stay in, and the look at a file that recovery needs.
//!
//! Guarantees: a file tool touches nothing outside the workspace, whatever links say and however
//! they change meanwhile; a write is whole or absent and its result says which (C39); a command
//! runs through the supervisor only, and its state comes from its exit receipt only (SV-02); what
//! goes to a model is valid text of a bounded length (C11).

mod arguments;
mod brought;
mod context;
mod digest;
mod edit;
mod error;
mod fetch;
mod file;
mod jobs;
mod outcome;
mod prepared;
mod registry;
mod sandbox;
mod search;
mod shell;
mod spec;
mod text;
mod verifier;
mod workspace;

pub use brought::BroughtTool;
pub use context::{Checkpoint, Context, Progress};
pub use edit::{Edit, EditFault, apply_edits};
pub use error::{Refusal, ToolError};
pub use file::aftermath::{Interrupted, finish_write};
pub use jobs::{JobLook, Jobs, NoJobs};
pub use outcome::{Background, FullOutput, ToolOutcome};
pub use prepared::{Prepared, ToolKind};
pub use registry::{MUTATING_TOOLS, Registry, RegistryConfig, may_have_effects};
pub use sandbox::SandboxConfig;
pub use shell::environment::command_environment;
pub use shell::finish::finish_shell;
pub use shell::handover::hands_over;
pub use text::{MODEL_TEXT_LIMIT, Pieces, visible};
pub use verifier::{FileInspection, Verdict, Verifier, inspect_file};
pub use workspace::Workspace;
