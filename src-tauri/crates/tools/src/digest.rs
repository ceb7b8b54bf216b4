//! SHA-256 of files, read in pieces.

use std::io::{self, Read};

use holdfast_domain::canonical::hex;
use sha2::{Digest, Sha256};

/// SHA-256 as 64 lower-case hex digits of everything that `reader` gives.
///
/// # Errors
/// What the reader says.
pub(crate) fn digest_of(mut reader: impl Read) -> io::Result<String> {
    let mut sum = Sha256::new();
    let mut piece = vec![0u8; 64 * 1024];
    loop {
        match reader.read(&mut piece) {
            Ok(0) => return Ok(hex(&sum.finalize())),
            Ok(count) => sum.update(piece.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
