//! The `holdfast` command: serves sessions, runs tasks, and looks after what is open.
//!
//! Guarantees: standard output carries what was asked for and nothing else, logs go to standard
//! error and to the data folder; every failure ends with a sentence that says what to do, and with
//! the exit code that `docs/ENVIRONMENT.md` names.

mod arguments;
mod data;
mod demo;
mod detach;
mod doctor;
mod holder;
mod jobs;
mod keychain;
mod logging;
mod recovery;
mod run;
mod serve;
mod sessions;
mod web;

use std::process::ExitCode;

use clap::Parser;

use crate::arguments::{Arguments, Command};

/// What a person must look at before the task can be called done.
pub(crate) const NEEDS_PERSON: u8 = 2;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            return failed(&anyhow::anyhow!(
                "the program can't start ({error}); nothing was done"
            ));
        }
    };
    match runtime.block_on(dispatch(arguments)) {
        Ok(code) => ExitCode::from(code),
        Err(error) => failed(&error),
    }
}

async fn dispatch(arguments: Arguments) -> anyhow::Result<u8> {
    let data = arguments.data;
    match arguments.command {
        Command::Serve(options) if options.detach => detach::find_or_start(data, &options),
        Command::Serve(options) => serve::serve(data, options).await,
        Command::Web(options) if options.detach => anyhow::bail!(
            "--detach is there for `holdfast serve` alone; nothing was started; a page is for \
             whoever started it"
        ),
        Command::Web(options) => web::web(data, options).await,
        Command::Run(options) => run::run(data, options).await,
        Command::Sessions(options) => sessions::sessions(data, options).await,
        Command::Recovery(options) => recovery::recovery(data, options).await,
        Command::Jobs(options) => jobs::jobs(data, options).await,
        Command::Doctor { json } => doctor::doctor(data, json),
        Command::DemoProject { folder } => demo::project(&folder),
    }
}

#[allow(clippy::print_stderr)]
fn failed(error: &anyhow::Error) -> ExitCode {
    eprintln!("holdfast: {error:#}");
    ExitCode::from(1)
}
