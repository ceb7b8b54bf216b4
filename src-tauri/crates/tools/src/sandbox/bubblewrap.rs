//! The sandbox on Linux: bubblewrap's mounts and namespaces, and the supervisor's inner stage.
//!
//! Guarantees: everything is mounted read-only but a private folder for temporary files and a minimal
//! `/dev`; no network, no processes and no shared memory of outside; no capabilities; its end is the
//! end of all that it started.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use holdfast_supervisor::Confinement;

use super::{Launch, Place, Task};

/// Private temporary files.
const TMP: &str = "/tmp";
/// The same, when the workspace itself lies in `/tmp`.
const SHM: &str = "/dev/shm";
/// Where the inner stage is seen inside.
const INNER: &str = "holdfast-supervisor";

/// How bubblewrap is called.
pub(super) fn launch(program: PathBuf, place: &Place<'_>, task: Task<'_>) -> Launch {
    let (folder, hidden) = (place.folder, place.hidden);
    let is_in = |place: &str| folder.starts_with(place);
    let scratch = PathBuf::from(if is_in(TMP) { SHM } else { TMP });
    let is_masked = |place: &str| {
        hidden
            .around
            .iter()
            .any(|(path, _)| path == Path::new(place))
    };
    let inner = match is_masked("/run") && !is_in("/run") {
        true => Path::new("/run").join(INNER),
        false => Path::new(TMP).join(INNER),
    };

    let mut words = Words::default();
    words.all(&["--unshare-all", "--die-with-parent", "--new-session"]);
    words.all(&["--cap-drop", "ALL", "--ro-bind", "/", "/", "--dev", "/dev"]);
    // Read-only: a kernel setting belongs to the whole machine, and to root it is a file like others.
    words.all(&["--proc", "/proc", "--remount-ro", "/proc"]);
    words.mask(&hidden.around);
    if !is_masked(TMP) {
        words.all(&["--tmpfs", TMP]);
    }
    if hidden.covers(folder) {
        words.bind(folder, folder);
    }
    words.mask(&hidden.within);
    words.bind(place.supervisor, &inner);
    for (path, is_folder) in hidden.around.iter().chain(&hidden.within) {
        // What was bound over a mask is read-only already, and so is a masked file.
        if *is_folder && *path != scratch && path != folder {
            words.path("--remount-ro", path);
        }
    }
    words.path("--chdir", folder);
    words.all(&["--"]);
    words.0.push(inner.clone().into());
    let confinement = Confinement {
        scratch: scratch.clone(),
        read_only: Some(folder.to_path_buf()),
        command: task.words(&inner),
    };
    words.0.extend(confinement.arguments());
    Launch {
        program,
        arguments: words.0,
        scratch: Some(scratch),
    }
}

#[derive(Default)]
struct Words(Vec<OsString>);

impl Words {
    fn all(&mut self, words: &[&str]) {
        self.0.extend(words.iter().map(OsString::from));
    }

    fn path(&mut self, option: &str, path: &Path) {
        self.0.extend([option.into(), path.into()]);
    }

    fn bind(&mut self, from: &Path, to: &Path) {
        self.0.extend(["--ro-bind".into(), from.into(), to.into()]);
    }

    /// An empty folder over each folder; over each file a device that can't be opened.
    fn mask(&mut self, hidden: &[(PathBuf, bool)]) {
        for (path, is_folder) in hidden {
            if *is_folder {
                self.path("--tmpfs", path);
            } else {
                self.bind(Path::new("/dev/null"), path);
            }
        }
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::super::hidden::Hidden;
    use super::*;

    fn words(folder: &str, hidden: &Hidden) -> (String, PathBuf) {
        let place = Place {
            folder: Path::new(folder),
            hidden,
            supervisor: Path::new("/data/bin/supervisor"),
        };
        let command = ["/bin/sh".into()];
        let launch = launch("/usr/bin/bwrap".into(), &place, Task::Command(&command));
        let words: Vec<_> = launch
            .arguments
            .iter()
            .map(|w| w.to_string_lossy())
            .collect();
        (words.join(" "), launch.scratch.unwrap())
    }

    #[test]
    fn tr_21_the_order_hides_what_lies_in_a_workspace_that_is_hidden_itself() {
        let hidden = Hidden {
            around: vec![("/run".into(), true), ("/tmp".into(), true)],
            within: vec![("/tmp/project/.data".into(), true)],
        };
        let (text, scratch) = words("/tmp/project", &hidden);
        assert_eq!(
            text,
            "--unshare-all --die-with-parent --new-session --cap-drop ALL --ro-bind / / --dev /dev \
             --proc /proc --remount-ro /proc --tmpfs /run --tmpfs /tmp \
             --ro-bind /tmp/project /tmp/project --tmpfs /tmp/project/.data \
             --ro-bind /data/bin/supervisor /run/holdfast-supervisor \
             --remount-ro /run --remount-ro /tmp --remount-ro /tmp/project/.data --chdir /tmp/project \
             -- /run/holdfast-supervisor confine /dev/shm /tmp/project -- /bin/sh"
        );
        assert_eq!(scratch, Path::new("/dev/shm"));
    }

    #[test]
    fn tr_21_temporary_files_are_private() {
        let hidden = Hidden {
            around: vec![("/etc/shadow".into(), false), ("/tmp".into(), true)],
            within: Vec::new(),
        };
        let (text, scratch) = words("/srv/project", &hidden);
        assert!(!text.contains("--remount-ro /tmp"), "{text}");
        assert!(!text.contains("--ro-bind /srv/project"), "{text}");
        assert!(text.contains("--ro-bind /dev/null /etc/shadow"), "{text}");
        assert!(
            text.contains("confine /tmp /srv/project -- /bin/sh"),
            "{text}"
        );
        assert_eq!(scratch, Path::new("/tmp"));
    }
}
