//! What a command in the sandbox does not see: where programs of outside listen, where keys are
//! kept, and the program's own data.
//!
//! Guarantee: only what exists is named, by its canonical path, and nothing twice.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders with sockets and with what belongs to other programs.
const SYSTEM: [&str; 2] = ["/run", "/tmp"];

/// Where keys and passwords are kept, beneath the home folder. A look into a project does not need
/// them, and its result goes to a model.
const KEYS: [&str; 36] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".boto",
    ".s3cfg",
    ".netrc",
    ".pgpass",
    ".my.cnf",
    ".npmrc",
    ".pypirc",
    ".vault-token",
    ".git-credentials",
    ".password-store",
    ".terraform.d",
    ".gem/credentials",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".config/gcloud",
    ".config/gh",
    ".config/hub",
    ".config/op",
    ".config/sops",
    ".config/git/credentials",
    ".config/containers/auth.json",
    ".config/google-chrome",
    ".config/chromium",
    ".mozilla",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    "Library/Keychains",
    "Library/Cookies",
    ".bash_history",
    ".zsh_history",
];

/// Of the system, when this user can read them.
const SYSTEM_KEYS: [&str; 2] = ["/etc/shadow", "/etc/gshadow"];

/// Canonical paths that are masked, each with whether it is a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hidden {
    /// Not beneath the workspace. The workspace may lie beneath one of them.
    pub(super) around: Vec<(PathBuf, bool)>,
    /// Beneath the workspace.
    pub(super) within: Vec<(PathBuf, bool)>,
}

impl Hidden {
    /// On this machine, for this user, around that workspace. `own` is the program's own data.
    pub(super) fn here(workspace: &Path, own: &[PathBuf]) -> Self {
        let home = env::var_os("HOME").map(PathBuf::from);
        let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let named = SYSTEM
            .iter()
            .chain(&SYSTEM_KEYS)
            .map(PathBuf::from)
            .chain(runtime)
            .chain(own.iter().cloned())
            .chain(home.iter().flat_map(|home| KEYS.map(|key| home.join(key))));
        Self::of(workspace, named)
    }

    fn of(workspace: &Path, named: impl Iterator<Item = PathBuf>) -> Self {
        let mut found: Vec<(PathBuf, bool)> = named
            .filter(|path| path.is_absolute())
            .filter_map(|path| {
                let path = fs::canonicalize(path).ok()?;
                let is_folder = path.is_dir();
                Some((path, is_folder))
            })
            // The file system as a whole can't be hidden, and a variable may say anything.
            .filter(|(path, _)| path.parent().is_some())
            .collect();
        found.sort();
        found.dedup();
        let (within, around): (Vec<_>, Vec<_>) = found
            .into_iter()
            .partition(|(path, _)| path != workspace && path.starts_with(workspace));
        Self {
            around: outermost(around),
            within: outermost(within),
        }
    }

    /// The workspace lies beneath something that is hidden, or is it.
    #[cfg(any(target_os = "linux", test))]
    pub(super) fn covers(&self, workspace: &Path) -> bool {
        self.around
            .iter()
            .any(|(path, _)| workspace.starts_with(path))
    }
}

/// Without what lies beneath another one. Sorted, so that one comes after what it lies beneath.
fn outermost(sorted: Vec<(PathBuf, bool)>) -> Vec<(PathBuf, bool)> {
    let mut kept: Vec<(PathBuf, bool)> = Vec::new();
    for (path, is_folder) in sorted {
        if !kept.iter().any(|(other, _)| path.starts_with(other)) {
            kept.push((path, is_folder));
        }
    }
    kept
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn tr_21_what_is_hidden_is_there_and_named_once() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        for name in ["home/.ssh/deep", "home/project/.data", "keys"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        fs::write(root.join("home/.netrc"), "").unwrap();
        std::os::unix::fs::symlink(root.join("keys"), root.join("home/.aws")).unwrap();
        let workspace = root.join("home/project");
        let named = [
            "home/.ssh",
            "home/.ssh/deep",
            "home/.netrc",
            "home/.aws",
            "home/.kube",
            "home/project/.data",
            "keys",
        ];
        let named = named.iter().map(|name| root.join(name));
        let hidden = Hidden::of(&workspace, named.chain([PathBuf::from("/")]));
        let of = |name: &str, is_folder| (root.join(name), is_folder);
        assert_eq!(
            hidden.around,
            [
                of("home/.netrc", false),
                of("home/.ssh", true),
                of("keys", true)
            ]
        );
        assert_eq!(hidden.within, [of("home/project/.data", true)]);
        assert!(!hidden.covers(&workspace));
        let hidden = Hidden::of(&workspace, [root.join("home")].into_iter());
        assert!(hidden.covers(&workspace));
    }
}
