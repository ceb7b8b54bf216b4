//! Where everything is kept, and what keeps two data folders apart.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use anyhow::Context;

/// The data folder of one running app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    /// Absolute.
    pub folder: PathBuf,
    /// What names of the system (the single instance, entries of the keychain) end with, so that
    /// apps on different folders don't meet; empty for the usual folder.
    pub suffix: String,
}

impl Home {
    /// `HOLDFAST_HOME`, else `holdfast` in the platform's local data folder.
    ///
    /// # Errors
    /// There is no such folder for this user, or its path can't be used.
    pub fn find() -> anyhow::Result<Self> {
        match std::env::var_os("HOLDFAST_HOME").filter(|value| !value.is_empty()) {
            Some(chosen) => Self::chosen(Path::new(&chosen)),
            None => Ok(Self {
                folder: dirs::data_local_dir()
                    .context(
                        "this user has no data folder; say with HOLDFAST_HOME where everything is \
                         to be kept",
                    )?
                    .join("holdfast"),
                suffix: String::new(),
            }),
        }
    }

    /// A folder of one's own.
    ///
    /// # Errors
    /// The present folder is gone and the path is relative.
    pub fn chosen(folder: &Path) -> anyhow::Result<Self> {
        let folder = std::path::absolute(folder)
            .with_context(|| format!("{} can't be used as data folder", folder.display()))?;
        let mut hasher = DefaultHasher::new();
        folder.hash(&mut hasher);
        Ok(Self {
            folder,
            suffix: format!(".h{:016x}", hasher.finish()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_told_apart_and_each_is_the_same_every_time() {
        let one = Home::chosen(Path::new("/one")).unwrap();
        assert_eq!(one, Home::chosen(Path::new("/one")).unwrap());
        let two = Home::chosen(Path::new("/two")).unwrap();
        assert_ne!(one.suffix, two.suffix);
        assert_ne!(one.suffix, "");
    }
}
