//! The receipts: `exit`, the only source of an attempt's end (SV-02), and `ended`, the end of a job
//! that outlived its call.
//!
//! Guarantee: a reader refuses one of another attempt, digest, owner, mode or protocol.

use std::io::{self, Read};
use std::path::Path;

use holdfast_domain::recovery::process::{EndedBy, ExitReceipt, Straggler, TreeProof};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::SupervisorError;
use crate::folder::{ENDED, EXIT, OUTPUT, open_checked, read_checked};
use crate::is_understood;

/// Bytes of a receipt, exactly.
pub(crate) const SIZE: usize = 4096;

/// The content of the file `ended`: how the processes that outlived a call ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobEnd {
    /// Protocol of the supervisor that wrote it.
    pub protocol: u32,
    /// The attempt whose processes they were.
    pub attempt_id: String,
    /// Unix milliseconds of the end.
    pub at: u64,
    /// Why they ended; `self` when the last one ended unasked.
    pub ended_by: EndedBy,
    /// What is proven.
    pub tree_proof: TreeProof,
    /// Who was told to end and did not.
    pub stragglers: Vec<Straggler>,
}

/// The exit receipt of an attempt, `None` when there is none.
///
/// # Errors
/// `foreign_receipt` for another attempt, digest or protocol, or unreadable content;
/// `foreign_file` for another owner, mode or kind of file; `supervisor_io`.
pub fn read_receipt(
    folder: &Path,
    attempt_id: &str,
    argument_digest: &str,
) -> Result<Option<ExitReceipt>, SupervisorError> {
    let refused = |reason: String| SupervisorError::ForeignReceipt { reason };
    let Some(content) = read_checked(folder, EXIT, SIZE as u64)? else {
        return Ok(None);
    };
    let receipt: ExitReceipt = serde_json::from_slice(&content)
        .map_err(|error| refused(format!("it can't be read ({error})")))?;
    if !is_understood(receipt.protocol) {
        return Err(refused(format!("it speaks protocol {}", receipt.protocol)));
    }
    if receipt.attempt_id != attempt_id {
        return Err(refused("it is another attempt's".to_owned()));
    }
    if receipt.argument_digest != argument_digest {
        return Err(refused("it is about other arguments".to_owned()));
    }
    Ok(Some(receipt))
}

/// How the job that an attempt left ended, `None` while it lives, or its supervisor was lost.
///
/// # Errors
/// `foreign_receipt`, `foreign_file`, `supervisor_io`.
pub fn read_end(folder: &Path, attempt_id: &str) -> Result<Option<JobEnd>, SupervisorError> {
    let refused = |reason: String| SupervisorError::ForeignReceipt { reason };
    let Some(content) = read_checked(folder, ENDED, SIZE as u64)? else {
        return Ok(None);
    };
    let end: JobEnd = serde_json::from_slice(&content)
        .map_err(|error| refused(format!("the job's end can't be read ({error})")))?;
    if !is_understood(end.protocol) || end.attempt_id != attempt_id {
        return Err(refused(
            "the job's end is another attempt's or protocol's".to_owned(),
        ));
    }
    Ok(Some(end))
}

/// Whether `output` begins with the very bytes that the receipt vouches for. False: show "output
/// incomplete". Reads the whole output.
///
/// # Errors
/// `foreign_file`, `supervisor_io`.
pub fn verify_output(folder: &Path, receipt: &ExitReceipt) -> Result<bool, SupervisorError> {
    let mut hash = Sha256::new();
    let mut left = receipt.output_length;
    if let Some(file) = open_checked(folder, OUTPUT)? {
        let mut file = file.take(left);
        let mut buffer = vec![0; 64 << 10];
        loop {
            match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => {
                    hash.update(&buffer[..n]);
                    left -= n as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(SupervisorError::io("reading the output")(error)),
            }
        }
    }
    Ok(left == 0 && hex(&hash.finalize()) == receipt.output_sha256)
}

/// Whether a receipt says that nothing of the tree is left. It is not checked whose it is: the
/// question is only whether a locked folder is still being worked in.
pub(crate) fn tree_is_over(folder: &Path) -> bool {
    if read_checked(folder, ENDED, SIZE as u64).is_ok_and(|content| content.is_some()) {
        return true;
    }
    read_checked(folder, EXIT, SIZE as u64)
        .ok()
        .flatten()
        .and_then(|content| serde_json::from_slice::<ExitReceipt>(&content).ok())
        .is_some_and(|receipt| !lives_on(&receipt))
}

/// Whether processes live on after this receipt.
pub(crate) fn lives_on(receipt: &ExitReceipt) -> bool {
    !receipt.survivors.is_empty() || !receipt.stragglers.is_empty()
}

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
