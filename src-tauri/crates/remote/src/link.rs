//! How a client of a host comes about: directly, or through a tunnel that has to be opened first.

use async_trait::async_trait;

use crate::client::Client;

/// Why there is no client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct LinkError {
    /// Stable code.
    pub code: &'static str,
    /// What happened, what is safe, what to do.
    pub message: String,
    /// Trying again changes nothing until a person has done something.
    pub lasting: bool,
}

/// Makes a client for each new connection.
#[async_trait]
pub trait Link: Send + Sync {
    /// A client for a new connection.
    ///
    /// # Errors
    /// Whether it is worth another try is said with it.
    async fn open(&self) -> Result<Client, LinkError>;
}

/// The host is reached as it is.
pub struct Direct(pub Client);

#[async_trait]
impl Link for Direct {
    async fn open(&self) -> Result<Client, LinkError> {
        Ok(self.0.clone())
    }
}
