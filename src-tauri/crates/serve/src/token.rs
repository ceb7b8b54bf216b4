//! The bearer token: 32 random bytes in a 0600 file, compared in constant time.
//!
//! Guarantee: it is never in a URL, a log or a debug text.

use std::io;
use std::path::Path;

use subtle::ConstantTimeEq;

/// The token of a host.
#[derive(Clone)]
pub struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Token(..)")
    }
}

impl Token {
    /// The token of that file; made when there is none. `random` gives the 32 bytes.
    ///
    /// # Errors
    /// What the system says; `InvalidData` for a file that holds no token, which is left as it is.
    pub fn load_or_create(file: &Path, random: impl FnOnce() -> [u8; 32]) -> io::Result<Self> {
        match holdfast_files::read_bounded(file, 4096) {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes).trim().to_owned();
                if text.len() < 32 || !text.bytes().all(|b| b.is_ascii_graphic()) {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        "the file holds no token of at least 32 characters; remove it to get a new \
                         one",
                    ));
                }
                Ok(Self(text))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let text = holdfast_domain::canonical::hex(&random());
                holdfast_files::write_private(file, text.as_bytes())?;
                Ok(Self(text))
            }
            Err(error) => Err(error),
        }
    }

    /// Compares in constant time.
    pub(crate) fn matches(&self, given: &str) -> bool {
        self.0.as_bytes().ct_eq(given.as_bytes()).into()
    }
}
