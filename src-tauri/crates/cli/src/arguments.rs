//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// A coding agent that never guesses what happened.
#[derive(Debug, Parser)]
#[command(name = "holdfast", version)]
pub(crate) struct Arguments {
    /// Folder for everything: configuration, sessions, tokens, logs.
    #[arg(long, global = true, env = "HOLDFAST_HOME", value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Host sessions over HTTP; prints one JSON line when ready.
    Serve(Serve),
    /// Serve, with the user interface for a browser; prints a link that lets one browser in.
    Web(Serve),
    /// Do one task in the terminal. Exit code 0: done; 2: something needs a person; 1: otherwise.
    Run(Run),
    /// List, show or export sessions.
    Sessions(Sessions),
    /// Look at and resolve calls whose outcome is unknown.
    Recovery(Recovery),
    /// List or stop processes that outlive their calls.
    Jobs(Jobs),
    /// Check whether this machine can keep the promises.
    Doctor {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Write the demo's small sample project into an empty folder.
    DemoProject {
        /// An empty folder, or one that does not exist.
        folder: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Address to listen on; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:0")]
    pub(crate) addr: SocketAddr,
    /// Workspace of sessions that name none.
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// File with the token; made when there is none.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Further name by which clients address this host; may be given several times.
    #[arg(long = "host-name", value_name = "NAME")]
    pub(crate) host_names: Vec<String>,
    /// A tunnel or proxy protects an address that is not loopback.
    #[arg(long)]
    pub(crate) behind_tunnel: bool,
    /// Start it in the background and print its line; with one there already, print that one's.
    #[arg(long)]
    pub(crate) detach: bool,
    /// This process is the one in the background.
    #[arg(long, hide = true)]
    pub(crate) detached: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    Text,
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The task.
    pub(crate) task: String,
    /// The folder to work in; the present one without it.
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// ask, edits, full or read-only.
    #[arg(long)]
    pub(crate) mode: Option<String>,
    /// provider/model.
    #[arg(long)]
    pub(crate) model: Option<String>,
    /// Text as it comes, or one JSON object at the end.
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Sessions {
    #[command(subcommand)]
    pub(crate) action: SessionsAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsAction {
    /// The latest sessions.
    List {
        /// Words that title or folder must contain.
        #[arg(long)]
        query: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// The transcript of one session.
    Show {
        /// Id of the session.
        session: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// The transcript as JSON, one item a line.
    Export {
        /// Id of the session.
        session: String,
        /// Accepted for symmetry; the export is JSON always.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Recovery {
    /// What to do.
    #[arg(value_enum)]
    pub(crate) action: RecoveryAction,
    /// Id of the session.
    #[arg(long)]
    pub(crate) session: String,
    /// Id of the attempt; not needed when there is only one.
    #[arg(long)]
    pub(crate) attempt: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RecoveryAction {
    /// Calls whose outcome is unknown.
    List,
    /// Look at one, execute nothing.
    Inspect,
    /// Say that the effect happened; after an inspection.
    Confirm,
    /// Refuse a retry; after an inspection. Proves and lifts nothing.
    Reject,
    /// Run it again behind a fence; where the host allows it.
    Retry,
    /// Go on without knowing.
    Dismiss,
}

#[derive(Debug, Args)]
pub(crate) struct Jobs {
    /// What to do.
    #[arg(value_enum)]
    pub(crate) action: JobsAction,
    /// Id of the session.
    #[arg(long)]
    pub(crate) session: String,
    /// Id of the job; for stop.
    #[arg(long)]
    pub(crate) job: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum JobsAction {
    /// What runs.
    List,
    /// Stop one, and wait until it is gone.
    Stop,
}
