//! Starting the command itself.
//!
//! Guarantees: null input, one pipe for output and error so that their order is real, an own
//! process group, exactly the request's environment and the attempt's id, default signals and no
//! blocked ones (the standard library does that), and the witness pipe.

use std::io::{self, PipeReader};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::Pid;

use super::tree::Tree;
use crate::ATTEMPT_VARIABLE;
use crate::request::Request;

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
    let (witness, held) = io::pipe().map_err(failed)?;
    for end in [&reader, &witness] {
        rustix::io::ioctl_fionbio(end, true).map_err(|error| failed(error.into()))?;
    }
    // The one descriptor that is inherited beside the standard streams. This process has one
    // thread, so nothing else is started before it is closed below.
    fcntl_setfd(&held, FdFlags::empty()).map_err(|error| failed(error.into()))?;
    let child = Command::new(&request.program)
        .args(&request.args)
        .current_dir(&request.cwd)
        .env_clear()
        .envs(request.env.iter().map(|(name, value)| (name, value)))
        .env(ATTEMPT_VARIABLE, &request.attempt_id)
        .stdin(Stdio::null())
        .stdout(writer.try_clone().map_err(failed)?)
        .stderr(writer)
        .process_group(0)
        .spawn()
        .map_err(failed)?;
    drop(held);
    let root = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let root = root.ok_or_else(|| "the system gave an impossible process id".to_owned())?;
    tree.take_root(root, witness, &request.attempt_id);
    Ok(reader)
}
