//! Starting the command itself.
//!
//! Guarantees: null input, one pipe for output and error so that their order is real, an own
//! process group, exactly the request's environment and the attempt's id, default signals and no
//! blocked ones (the standard library does that), and a raised oom score (SV-05).

use std::fs;
use std::io::{self, PipeReader};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rustix::process::Pid;

use super::tree::Tree;
use crate::ATTEMPT_VARIABLE;
use crate::request::Request;

const OOM_SCORE: &str = "/proc/self/oom_score_adj";

/// Starts it as the tree's root. The error is a sentence for the receipt.
pub(in crate::keeper) fn spawn(request: &Request, tree: &mut Tree) -> Result<PipeReader, String> {
    if !request.cwd.is_dir() {
        return Err(format!(
            "the working folder {} is not there",
            request.cwd.display()
        ));
    }
    let failed = |error: io::Error| {
        let program = request.program.to_string_lossy();
        // Bounded: the receipt has 4 KiB.
        let program: String = program.chars().take(200).collect();
        format!("{program} could not be executed: {error}")
    };
    let (reader, writer) = io::pipe().map_err(failed)?;
    rustix::io::ioctl_fionbio(&reader, true).map_err(|error| failed(error.into()))?;
    let mut command = Command::new(&request.program);
    command
        .args(&request.args)
        .current_dir(&request.cwd)
        .env_clear()
        .envs(request.env.iter().map(|(name, value)| (name, value)))
        .env(ATTEMPT_VARIABLE, &request.attempt_id)
        .stdin(Stdio::null())
        .stdout(writer.try_clone().map_err(failed)?)
        .stderr(writer)
        .process_group(0);
    // The command inherits the score, so no descendant of it is ever without; the supervisor takes
    // its own back at once.
    let own = raise_oom_score();
    let spawned = command.spawn();
    if let Some(own) = own {
        let _ = fs::write(OOM_SCORE, own);
    }
    let child = spawned.map_err(failed)?;
    let root = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    tree.root = Some(root.ok_or_else(|| "the system gave an impossible process id".to_owned())?);
    Ok(reader)
}

/// Raises this process's score by 500, and answers what it was.
fn raise_oom_score() -> Option<String> {
    let own = fs::read_to_string(OOM_SCORE).ok()?;
    let score: i32 = own.trim().parse().ok()?;
    fs::write(OOM_SCORE, (score + 500).min(1000).to_string()).ok()?;
    Some(own)
}
