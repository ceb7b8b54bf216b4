//! A trial of a host: does it answer, and does it let us in?

use reqwest::Method;

use crate::client::Limits;
use crate::link::{Link, LinkError};

/// Asks the host once for its status.
///
/// # Errors
/// What is wrong, with a stable code.
pub async fn probe(link: &dyn Link) -> Result<(), LinkError> {
    let client = link.open().await?;
    let request = client.request(Method::GET, &["status"]);
    match client.value(request, Limits::VERIFICATION).await {
        Ok(_) => Ok(()),
        Err(error) => Err(LinkError {
            code: error.stable_code(),
            message: error.to_string(),
            lasting: false,
        }),
    }
}
