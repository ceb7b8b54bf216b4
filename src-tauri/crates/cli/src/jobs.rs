//! `holdfast jobs`: process trees that outlive their calls.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use holdfast_api::session::Job;

use crate::arguments::{Jobs, JobsAction};
use crate::holder::Holder;

pub(crate) async fn jobs(folder: Option<PathBuf>, options: Jobs) -> anyhow::Result<u8> {
    let holder = Holder::of(folder, &options.session).await?;
    let done = act(&holder, &options).await;
    holder.release().await;
    let jobs = done?;
    let mut out = std::io::stdout();
    if options.json {
        writeln!(out, "{}", serde_json::to_string(&jobs)?)?;
    } else if jobs.is_empty() {
        writeln!(out, "Nothing runs.")?;
    } else {
        for job in &jobs {
            writeln!(out, "{}  {}", job.id, job.subject)?;
        }
    }
    Ok(0)
}

async fn act(holder: &Holder, options: &Jobs) -> anyhow::Result<Vec<Job>> {
    match options.action {
        JobsAction::List => holder.jobs().await,
        JobsAction::Stop => {
            let id = options
                .job
                .as_deref()
                .context("say which job with --job; nothing was stopped")?;
            holder.stop(id).await
        }
    }
}
