//! A receipt's space on the disk, and what goes into it.
//!
//! Guarantees: the space is taken before the command runs, so that a full disk can't lose the
//! receipt; it appears whole, by rename; however many processes it names, it fits.

use std::fs::{self, File};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

use holdfast_domain::recovery::process::Straggler;

use crate::folder::{ENDED, EXIT, create_new};
use crate::receipt::SIZE;

/// Processes that a receipt names at most; the last entry says how many more there are.
const NAMED: usize = 24;

/// A receipt's space on the disk, taken before it is needed.
pub(super) struct Reserved {
    file: File,
    draft: PathBuf,
    target: PathBuf,
}

impl Reserved {
    /// For the file `exit`.
    pub(super) fn exit(folder: &Path) -> io::Result<Self> {
        Self::named(folder, EXIT)
    }

    /// For the file `ended`.
    pub(super) fn ended(folder: &Path) -> io::Result<Self> {
        Self::named(folder, ENDED)
    }

    fn named(folder: &Path, name: &str) -> io::Result<Self> {
        let draft = folder.join(format!("{name}.reserved"));
        let mut file = create_new(&draft)?;
        // Written rather than only allocated: it holds on every file system.
        file.write_all(&[b' '; SIZE])?;
        Ok(Self {
            file,
            draft,
            target: folder.join(name),
        })
    }

    /// Writes in place and renames. The file comes back for its sync, which the caller does after
    /// telling the host.
    pub(super) fn publish(mut self, mut content: Vec<u8>) -> io::Result<File> {
        if content.len() > SIZE {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        // Blanks behind the JSON keep the reserved length: nothing is cut or grown.
        content.resize(SIZE, b' ');
        self.file.rewind()?;
        self.file.write_all(&content)?;
        fs::rename(&self.draft, &self.target)?;
        Ok(self.file)
    }
}

/// Names at most `NAMED` processes, and says how many more there are.
pub(super) fn named(mut all: Vec<Straggler>) -> Vec<Straggler> {
    if all.len() > NAMED {
        let more = all.len() - (NAMED - 1);
        all.truncate(NAMED - 1);
        all.push(Straggler {
            pid: 0,
            name: format!("and {more} more"),
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use holdfast_domain::recovery::process::{EndedBy, ExitReceipt, TreeProof};

    use super::*;
    use crate::PROTOCOL;

    #[test]
    fn the_largest_receipt_fits_its_space() {
        let many = |n: u32| {
            named(
                (0..n)
                    .map(|i| Straggler {
                        pid: u32::MAX - i,
                        name: "\"".repeat(15),
                    })
                    .collect(),
            )
        };
        let receipt = ExitReceipt {
            protocol: PROTOCOL,
            attempt_id: "a".repeat(64),
            argument_digest: "b".repeat(64),
            code: Some(i32::MIN),
            signal: Some(i32::MIN),
            ended_by: EndedBy::HostLoss,
            spawn_error: None,
            output_length: u64::MAX,
            output_sha256: "c".repeat(64),
            output_truncated: true,
            tree_proof: TreeProof::None,
            stragglers: many(1000),
            survivors: many(1000),
            started_at: u64::MAX,
            finished_at: u64::MAX,
        };
        assert_eq!(receipt.stragglers[23].name, "and 977 more");
        assert!(serde_json::to_vec(&receipt).unwrap().len() <= SIZE);
    }
}
