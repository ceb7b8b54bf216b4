//! `holdfast jobs`: process trees that outlive their calls.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use holdfast_api::SessionHost;
use holdfast_api::host::Selector;
use holdfast_api::session::{CancelJob, Job};
use holdfast_controller::Host;

use crate::arguments::{Jobs, JobsAction};
use crate::data;

pub(crate) async fn jobs(folder: Option<PathBuf>, options: Jobs) -> anyhow::Result<u8> {
    let host = data::host(data::folder(folder)?, None)?;
    let done = act(&host, &options).await;
    host.release().await;
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

async fn act(host: &Host, options: &Jobs) -> anyhow::Result<Vec<Job>> {
    let selector = Selector::of(&options.session);
    match options.action {
        JobsAction::List => Ok(host.jobs(&selector).await?),
        JobsAction::Stop => {
            let id = options
                .job
                .clone()
                .context("say which job with --job; nothing was stopped")?;
            let mut events = host
                .hub()
                .reader(false, Some(options.session.clone()), None);
            host.cancel_job(&selector, CancelJob { id: id.clone() })
                .await?;
            loop {
                let left = host.jobs(&selector).await?;
                if left.iter().all(|job| job.id != id) {
                    return Ok(left);
                }
                events.next().await;
            }
        }
    }
}
