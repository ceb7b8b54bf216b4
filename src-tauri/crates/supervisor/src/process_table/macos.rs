//! The system's table of processes on macOS, as far as it tells this user.

use std::path::PathBuf;

use holdfast_domain::recovery::process::Straggler;

use crate::ATTEMPT_VARIABLE;
use crate::darwin;

/// One process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) pid: u32,
    /// Microseconds since 1970.
    pub(crate) start_time: u64,
    /// At most 64 characters, without control characters.
    pub(crate) name: String,
}

impl Entry {
    pub(crate) fn straggler(&self) -> Straggler {
        Straggler {
            pid: self.pid,
            name: self.name.clone(),
        }
    }
}

/// The id of this boot, as the kernel gives it.
pub(crate) fn boot_id() -> std::io::Result<String> {
    darwin::boot_session()
}

/// A living process as it is now; `None` for one that has ended, reaped or not.
pub(crate) fn entry(pid: u32) -> Option<Entry> {
    let found = darwin::process(pid)?;
    if found.has_ended {
        return None;
    }
    // The kernel's own name is cut at 15 characters; the program's path is not.
    let name = darwin::program(pid)
        .map(PathBuf::from)
        .and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
        .unwrap_or(found.name);
    Some(Entry {
        pid,
        start_time: found.started_us,
        name: name
            .chars()
            .map(|c| if c.is_control() { '?' } else { c })
            .take(64)
            .collect(),
    })
}

/// When a process started.
pub(crate) fn start_time(pid: u32) -> Option<u64> {
    entry(pid).map(|entry| entry.start_time)
}

/// The living processes of a group.
pub(crate) fn group(leader: u32) -> Vec<Entry> {
    darwin::group(leader)
        .into_iter()
        .filter_map(entry)
        .collect()
}

/// The living processes of this user with the attempt's id in their environment.
pub(crate) fn carriers(attempt_id: &str) -> Vec<Entry> {
    let wanted = format!("{ATTEMPT_VARIABLE}={attempt_id}");
    darwin::all_processes()
        .into_iter()
        .filter(|pid| {
            darwin::arguments_and_environment(*pid).is_some_and(|text| carries(&text, &wanted))
        })
        .filter_map(entry)
        .collect()
}

/// As `carriers`, for display.
pub(crate) fn carrying(attempt_id: &str) -> Vec<Straggler> {
    carriers(attempt_id).iter().map(Entry::straggler).collect()
}

/// Looks a variable up in what the kernel keeps of a process: the number of arguments, the
/// program's path, zeros, the arguments and then the environment, each ending with a zero.
fn carries(text: &[u8], wanted: &str) -> bool {
    let Some((count, rest)) = text.split_first_chunk::<4>() else {
        return false;
    };
    let count = usize::try_from(i32::from_ne_bytes(*count)).unwrap_or(0);
    let path_end = rest
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(rest.len());
    let padding = rest[path_end..]
        .iter()
        .take_while(|byte| **byte == 0)
        .count();
    rest[path_end + padding..]
        .split(|byte| *byte == 0)
        .skip(count)
        .any(|variable| variable == wanted.as_bytes())
}
