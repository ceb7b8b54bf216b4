//! Logs: warnings to standard error, more to a file of the data folder. Neither carries keys,
//! prompts or whole paths.

use std::path::Path;

use tracing_appender::non_blocking::WorkerGuard;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

/// Days of logs that are kept.
const DAYS: usize = 7;

/// Starts logging; what is buffered is written when the guard is dropped. Without a folder that
/// can be written, standard error alone is used.
pub(crate) fn start(data: &Path) -> Option<WorkerGuard> {
    let wanted = EnvFilter::builder()
        .with_default_directive(LevelFilter::WARN.into())
        .with_env_var("HOLDFAST_LOG")
        .from_env_lossy();
    let errors = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_filter(wanted);
    let folder = data.join("logs");
    let file = holdfast_files::create_private_folder(&folder)
        .ok()
        .and_then(|()| {
            tracing_appender::rolling::Builder::new()
                .rotation(tracing_appender::rolling::Rotation::DAILY)
                .filename_prefix("holdfast")
                .filename_suffix("log")
                .max_log_files(DAYS)
                .build(&folder)
                .ok()
        })
        .map(tracing_appender::non_blocking);
    match file {
        Some((writer, guard)) => {
            let file = tracing_subscriber::fmt::layer()
                .with_writer(writer)
                .with_ansi(false)
                .with_filter(LevelFilter::INFO);
            tracing_subscriber::registry()
                .with(errors)
                .with(file)
                .init();
            Some(guard)
        }
        None => {
            tracing_subscriber::registry().with(errors).init();
            None
        }
    }
}
