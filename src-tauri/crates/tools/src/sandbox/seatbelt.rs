//! The sandbox on macOS: sandbox-exec with the same denials. Written to the rule; the probe decides on
//! each machine whether it holds.
//!
//! Guarantee: a path can't end its place in the profile.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::hidden::Hidden;
use super::{Launch, Place, Task};

/// Everything that changes something outside the process is denied: files, named pipes and devices
/// (but the null device), sockets of every family, signals to others, services, settings, shared
/// memory, starting programs through the system.
const DENIALS: &str = "(version 1)
(allow default)
(deny file-write*)
(allow file-write-data (literal \"/dev/null\") (literal \"/dev/zero\"))
(deny network*)
(deny signal)
(allow signal (target self))
(allow signal (target children))
(deny mach-lookup)
(deny mach-register)
(deny mach-priv*)
(deny ipc-posix*)
(deny ipc-sysv*)
(deny sysctl-write)
(deny system*)
(allow system-fsctl)
(deny iokit-open)
(deny appleevent-send)
(deny lsopen)
(deny job-creation)
(deny process-info* (target others))
";

/// How sandbox-exec is called. There is no private folder for temporary files.
pub(super) fn launch(program: PathBuf, place: &Place<'_>, task: Task<'_>) -> Launch {
    let profile = profile(place.folder, place.hidden);
    let mut arguments: Vec<OsString> = vec!["-p".into(), profile.into()];
    arguments.extend(task.words(place.supervisor));
    Launch {
        program,
        arguments,
        scratch: None,
    }
}

/// Later rules go before earlier ones.
fn profile(folder: &Path, hidden: &Hidden) -> String {
    let mut profile = DENIALS.to_owned();
    let mut rule = |verb: &str, path: &Path| {
        let path = quoted(&path.to_string_lossy());
        profile.push_str(&format!("({verb} file-read* (subpath {path}))\n"));
    };
    for (path, _) in &hidden.around {
        rule("deny", path);
    }
    rule("allow", folder);
    for (path, _) in &hidden.within {
        rule("deny", path);
    }
    profile
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tr_21_a_path_stays_inside_its_quotes_and_the_workspace_is_seen() {
        let hidden = Hidden {
            around: vec![("/Users/u/.ssh".into(), true)],
            within: vec![("/w/a\"b\\c".into(), true)],
        };
        let place = Place {
            folder: Path::new("/w"),
            hidden: &hidden,
            supervisor: Path::new("/data/bin/supervisor"),
        };
        let command = ["/bin/sh".into()];
        let launch = launch(
            "/usr/bin/sandbox-exec".into(),
            &place,
            Task::Command(&command),
        );
        let [option, profile, shell] = launch.arguments.as_slice() else {
            panic!("{launch:?}");
        };
        assert_eq!(
            (option.to_str(), shell.to_str()),
            (Some("-p"), Some("/bin/sh"))
        );
        let rules = profile.to_str().unwrap().strip_prefix(DENIALS).unwrap();
        assert_eq!(
            rules,
            "(deny file-read* (subpath \"/Users/u/.ssh\"))\n\
             (allow file-read* (subpath \"/w\"))\n\
             (deny file-read* (subpath \"/w/a\\\"b\\\\c\"))\n"
        );
    }
}
