//! Launching on Windows: detached from the host's console and handles, and out of its job object
//! where that may be left.
//!
//! Guarantee: the supervisor inherits no handle. The standard library would let it inherit every
//! inheritable one, such as the host's own output, which would then stay open for hours.

use std::ffi::OsString;
use std::io;
use std::os::windows::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use crate::command_line::command_line;
use crate::win32::{
    self, CREATE_BREAKAWAY_FROM_JOB, CREATE_NEW_PROCESS_GROUP, CREATE_NO_WINDOW, Creation, OwnJob,
    Process,
};

/// Between two looks at the process. The host looks at the files as often while there is no socket.
const PACE: Duration = Duration::from_millis(20);
/// Without these, parts of Windows do not work; neither says anything about the person.
const NEEDED: [&str; 3] = ["SystemRoot", "SystemDrive", "windir"];

#[derive(Debug)]
pub(super) struct Launched(Process);

impl Launched {
    pub(super) async fn wait(&mut self) {
        while !self.0.has_ended() {
            tokio::time::sleep(PACE).await;
        }
    }

    pub(super) fn id(&self) -> Option<u32> {
        Some(self.0.pid())
    }
}

pub(super) fn launch(binary: &Path, folder: &Path) -> io::Result<Launched> {
    let wide = |path: &Path| path.as_os_str().encode_wide().collect::<Vec<u16>>();
    // The host's environment holds keys, and no process should keep them for hours.
    let environment: Vec<(OsString, OsString)> = NEEDED
        .iter()
        .filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)))
        .collect();
    // A console of its own, without a window: the command's group gets Ctrl+Break through it.
    let flags = CREATE_NO_WINDOW | CREATE_NEW_PROCESS_GROUP;
    let leaving = match win32::own_job() {
        OwnJob::None => 0,
        OwnJob::MayLeave | OwnJob::Closed => CREATE_BREAKAWAY_FROM_JOB,
    };
    let create = |flags| {
        win32::create(Creation {
            program: binary,
            command_line: command_line(&wide(binary), [wide(folder)], false),
            flags,
            environment: &environment,
            folder: None,
            streams: None,
        })
    };
    // Where leaving is denied the supervisor says in its claim that it may not outlive the host.
    let created = match create(flags | leaving) {
        Err(_) if leaving != 0 => create(flags),
        created => created,
    };
    created.map(|(process, _thread)| Launched(process))
}

pub(super) fn survives_host() -> bool {
    win32::own_job() != OwnJob::Closed
}
