//! The system's table of processes, read from /proc.
//!
//! Guarantees: an entry is one process at one moment, named by pid and start time; the descendants
//! of a process are found through every thread of every process between, so that a daemon which
//! left its group and session is seen as long as a subreaper holds its line.

use std::collections::{HashMap, HashSet};
use std::fs;

use holdfast_domain::recovery::process::Straggler;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::ATTEMPT_VARIABLE;

/// One process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    /// Clock ticks since the boot.
    pub(crate) start_time: u64,
    /// One letter, as the kernel gives it.
    pub(crate) state: char,
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

    /// False for what has ended and only waits to be reaped. A process whose first thread has ended
    /// looks like that too, while its other threads run.
    pub(crate) fn lives(&self) -> bool {
        match self.state {
            'Z' | 'X' => threads(self.pid).len() > 1,
            _ => true,
        }
    }
}

/// A process as it is now.
pub(crate) fn entry(pid: u32) -> Option<Entry> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse(pid, &String::from_utf8_lossy(&stat))
}

fn parse(pid: u32, stat: &str) -> Option<Entry> {
    // The name is in parentheses and may hold parentheses and spaces itself.
    let open = stat.find('(')?;
    let close = stat.rfind(')')?;
    let name = stat.get(open + 1..close)?;
    let mut fields = stat.get(close + 1..)?.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    let parent = fields.next()?.parse().ok()?;
    // After state and parent come fields 5 to 21; the start time is field 22.
    let start_time = fields.nth(17)?.parse().ok()?;
    Some(Entry {
        pid,
        parent,
        start_time,
        state,
        name: name
            .chars()
            .map(|c| if c.is_control() { '?' } else { c })
            .take(64)
            .collect(),
    })
}

/// Every descendant of a process, the ended and unreaped included.
pub(crate) fn descendants(root: u32) -> Vec<Entry> {
    let mut seen = HashSet::from([root]);
    let mut found = Vec::new();
    let mut open = vec![root];
    let mut by_parent: Option<HashMap<u32, Vec<u32>>> = None;
    while let Some(parent) = open.pop() {
        let children = children(parent).unwrap_or_else(|| {
            by_parent
                .get_or_insert_with(all_by_parent)
                .get(&parent)
                .cloned()
                .unwrap_or_default()
        });
        for pid in children {
            if seen.insert(pid) {
                open.push(pid);
                found.extend(entry(pid));
            }
        }
    }
    found
}

/// Living processes with the attempt's id in their environment.
pub(crate) fn carrying(attempt_id: &str) -> Vec<Entry> {
    let wanted = format!("{ATTEMPT_VARIABLE}={attempt_id}");
    pids()
        .into_iter()
        .filter_map(|pid| {
            let before = entry(pid)?;
            let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
            let carries = environment
                .split(|byte| *byte == 0)
                .any(|variable| variable == wanted.as_bytes());
            // The number may have gone to another process meanwhile.
            let after = entry(pid)?;
            (carries && after.start_time == before.start_time).then_some(after)
        })
        .filter(Entry::lives)
        .collect()
}

/// Signals this very process: through a descriptor whose process was matched by start time (SV-06).
/// One that has ended, or may not be signalled, is left: whether it is gone is asked of the table.
pub(crate) fn send(process: &Entry, signal: Signal) {
    let Some(pid) = i32::try_from(process.pid).ok().and_then(Pid::from_raw) else {
        return;
    };
    let Ok(descriptor) = pidfd_open(pid, PidfdFlags::empty()) else {
        return;
    };
    if entry(process.pid).is_some_and(|now| now.start_time == process.start_time) {
        let _ = pidfd_send_signal(&descriptor, signal);
    }
}

/// The children of all threads of a process; `None` when the kernel does not list them.
fn children(pid: u32) -> Option<Vec<u32>> {
    let mut found = Vec::new();
    for thread in threads(pid) {
        match fs::read_to_string(format!("/proc/{pid}/task/{thread}/children")) {
            Ok(list) => found.extend(
                list.split_ascii_whitespace()
                    .filter_map(|pid| pid.parse::<u32>().ok()),
            ),
            // A thread may end at any moment; a kernel without the file has it for no thread.
            Err(_) if fs::exists(format!("/proc/{pid}/task/{thread}")).unwrap_or(false) => {
                return None;
            }
            Err(_) => {}
        }
    }
    Some(found)
}

fn all_by_parent() -> HashMap<u32, Vec<u32>> {
    let mut table: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in pids().into_iter().filter_map(entry) {
        table.entry(entry.parent).or_default().push(entry.pid);
    }
    table
}

fn pids() -> Vec<u32> {
    numbers("/proc")
}

fn threads(pid: u32) -> Vec<u32> {
    numbers(&format!("/proc/{pid}/task"))
}

fn numbers(folder: &str) -> Vec<u32> {
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_line_breaks_is_read_whole() {
        let stat =
            "7 (a) b (\nc) S 3 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4242 0 0 1844 0 0 0";
        let entry = parse(7, stat).unwrap();
        assert_eq!(entry.name, "a) b (?c");
        assert_eq!(
            (entry.state, entry.parent, entry.start_time),
            ('S', 3, 4242)
        );
    }

    #[test]
    fn sv_06_this_process_is_found_with_a_start_time() {
        let own = std::process::id();
        let entry = entry(own).unwrap();
        assert!(entry.start_time > 0 && entry.lives());
        let all = all_by_parent();
        assert!(all[&entry.parent].contains(&own));
    }

    #[test]
    fn sv_06_a_process_of_another_start_time_is_not_signalled() {
        let mut child = std::process::Command::new("sleep")
            .arg("600")
            .spawn()
            .unwrap();
        let real = entry(child.id()).unwrap();
        let other = Entry {
            start_time: real.start_time + 1,
            ..real.clone()
        };
        send(&other, Signal::KILL);
        // Had it been sent, it would be here before this one, and the end would be by KILL.
        send(&real, Signal::TERM);
        let status = child.wait().unwrap();
        assert_eq!(
            std::os::unix::process::ExitStatusExt::signal(&status),
            Some(15)
        );
    }
}
