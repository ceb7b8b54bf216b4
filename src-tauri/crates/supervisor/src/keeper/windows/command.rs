//! Starting the command itself.
//!
//! Guarantees: null input, one pipe for output and error so that their order is real, an own
//! process group on the supervisor's invisible console, exactly the request's environment and the
//! attempt's id, and no other handle; it is in the job before its first instruction (SV-03).

use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::io;
use std::os::windows::ffi::OsStrExt;
use std::os::windows::io::OwnedHandle;
use std::path::{Path, PathBuf};

use super::pipe::Pipe;
use super::tree::Tree;
use crate::ATTEMPT_VARIABLE;
use crate::command_line::command_line;
use crate::request::Request;
use crate::win32::{CREATE_NEW_PROCESS_GROUP, CREATE_SUSPENDED, Creation, create};

/// Starts it as the tree's root. The error is a sentence for the receipt.
pub(in crate::keeper) fn spawn(request: &Request, tree: &mut Tree) -> Result<Pipe, String> {
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
    let program = find(request).map_err(failed)?;
    let null = OpenOptions::new().read(true).open("NUL").map_err(failed)?;
    let null = OwnedHandle::from(null);
    let (reader, writer) = io::pipe().map_err(failed)?;
    let writer = OwnedHandle::from(writer);
    let mut environment = request.env.clone();
    environment.retain(|(name, _)| !name.eq_ignore_ascii_case(ATTEMPT_VARIABLE));
    environment.push((ATTEMPT_VARIABLE.into(), OsString::from(&request.attempt_id)));
    let folder = plain(&request.cwd);
    let (process, thread) = create(Creation {
        program: &program,
        command_line: command_line(
            &wide(program.as_os_str()),
            request.args.iter().map(|argument| wide(argument)),
            is_cmd(&program),
        ),
        flags: CREATE_SUSPENDED | CREATE_NEW_PROCESS_GROUP,
        environment: &environment,
        folder: Some(&folder),
        streams: Some([&null, &writer]),
    })
    .map_err(failed)?;
    tree.take_root(process).map_err(failed)?;
    if let Err(error) = thread.resume() {
        tree.kill();
        return Err(failed(error));
    }
    Ok(Pipe::of(reader))
}

/// The program's file: as it is named, or of that name in the folders of the environment's PATH.
/// The working folder is not looked at. Batch files are refused, since their arguments can't be
/// passed on without change: `cmd` runs them.
fn find(request: &Request) -> io::Result<PathBuf> {
    let mut name = PathBuf::from(&request.program);
    if name.extension().is_none() {
        name.set_extension("exe");
    }
    let is_batch = |extension: &OsStr| {
        extension.eq_ignore_ascii_case("bat") || extension.eq_ignore_ascii_case("cmd")
    };
    if name.extension().is_some_and(is_batch) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "a batch file is run by cmd, not by itself",
        ));
    }
    if name.components().count() > 1 {
        return Ok(name);
    }
    request
        .env
        .iter()
        .find(|(variable, _)| variable.eq_ignore_ascii_case("PATH"))
        .into_iter()
        .flat_map(|(_, folders)| std::env::split_paths(folders))
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(&name))
        .find(|place| place.is_file())
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "it is in no folder of PATH"))
}

/// Whether a program takes its command as `cmd` does.
fn is_cmd(program: &Path) -> bool {
    program
        .file_stem()
        .is_some_and(|stem| stem.eq_ignore_ascii_case("cmd"))
}

/// A folder without the prefix `\\?\`, which `cmd` does not take as a working folder.
fn plain(folder: &Path) -> PathBuf {
    let text = folder.to_string_lossy();
    match text.strip_prefix(r"\\?\") {
        Some(rest) if rest.as_bytes().get(1) == Some(&b':') => PathBuf::from(rest),
        _ => folder.to_path_buf(),
    }
}

fn wide(text: &OsStr) -> Vec<u16> {
    text.encode_wide().collect()
}
