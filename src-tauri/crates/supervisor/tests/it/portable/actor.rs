//! This test program as a command: it plays the role that its environment names.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use super::stage::binary;

/// The role; without it the test below does nothing.
pub(crate) const ROLE: &str = "ACTOR_ROLE";
/// The folder in which it leaves its traces.
pub(crate) const FOLDER: &str = "ACTOR_FOLDER";
/// The effect folder that a host launches.
pub(crate) const EFFECT: &str = "ACTOR_EFFECT";
/// How the test program is told to be an actor.
pub(crate) const ARGUMENTS: [&str; 3] = [
    "--exact",
    "portable::actor::an_actor_for_the_other_tests",
    "--nocapture",
];

#[tokio::test]
#[expect(
    clippy::zombie_processes,
    reason = "that nobody waits for them is what the roles are about"
)]
async fn an_actor_for_the_other_tests() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let folder = PathBuf::from(std::env::var_os(FOLDER).unwrap());
    match role.as_str() {
        "sleep" => sleep(&folder),
        // Three generations.
        "tree" => {
            spawn("branch");
            sleep(&folder);
        }
        "branch" => {
            spawn("sleep");
            sleep(&folder);
        }
        "leave" => {
            spawn("sleep");
            note(&folder, "pids", &std::process::id().to_string());
            std::process::exit(3);
        }
        "escape" => {
            let said = match escape() {
                Ok(_) => "escaped".to_owned(),
                Err(error) => format!("denied {}", error.raw_os_error().unwrap_or(0)),
            };
            note(&folder, "escape", &said);
            sleep(&folder);
        }
        "host" => {
            let effect = PathBuf::from(std::env::var_os(EFFECT).unwrap());
            let launched = holdfast_supervisor::launch(binary(), &effect).unwrap();
            note(&folder, "launched", &launched.id().unwrap().to_string());
            sleep(&folder);
        }
        other => panic!("there is no role {other}"),
    }
}

/// Says who it is and stays until it is ended.
fn sleep(folder: &Path) -> ! {
    note(folder, "pids", &std::process::id().to_string());
    loop {
        std::thread::park();
    }
}

fn note(folder: &Path, name: &str, line: &str) {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(folder.join(name))
        .unwrap()
        .write_all(format!("{line}\n").as_bytes())
        .unwrap();
}

/// A child of this program, in another role.
pub(crate) fn child(role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(ARGUMENTS).env(ROLE, role);
    command
}

fn spawn(role: &str) -> Child {
    child(role).spawn().unwrap()
}

/// Starts a child that wants to be outside the tree.
#[cfg(windows)]
fn escape() -> std::io::Result<Child> {
    use std::os::windows::process::CommandExt;
    const CREATE_BREAKAWAY_FROM_JOB: u32 = 0x0100_0000;
    child("sleep")
        .creation_flags(CREATE_BREAKAWAY_FROM_JOB)
        .spawn()
}

/// Starts a child in a process group of its own.
#[cfg(unix)]
fn escape() -> std::io::Result<Child> {
    use std::os::unix::process::CommandExt;
    child("sleep").process_group(0).spawn()
}
