//! How a host speaks: as we do, or as a Reasonix serve does.
//!
//! Guarantee: a host counts as another one only when it says so itself, in a reply that no host of
//! ours gives; what is not recognised is spoken to as one of ours, and its strange answers are
//! errors.

use serde_json::Value;

use crate::client::{Client, Limits};
use crate::error::RemoteError;
use crate::foreign::COOKIE;

/// How a host speaks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Dialect {
    /// As docs/WIRE.md says.
    #[default]
    Own,
    /// As a Reasonix serve does: one session at a time, the token in a cookie, replies and frames of
    /// other shapes. What it can't do is refused with `host_unsupported`.
    Reasonix,
}

/// Finds out how the host of this client speaks, and answers the client to go on with.
///
/// What fails here fails again with the event stream, which says why.
pub(crate) async fn meet(client: Client) -> (Client, Dialect) {
    if !matches!(
        client.greets().await,
        Ok(false) | Err(RemoteError::Unauthorized)
    ) {
        return (client, Dialect::Own);
    }
    let Ok(other) = client.with_cookie(COOKIE) else {
        return (client, Dialect::Own);
    };
    let none: [(&str, &str); 0] = [];
    match other.get(&["status"], &none, Limits::VERIFICATION).await {
        Ok(status) if is_reasonix(&status) => (other, Dialect::Reasonix),
        _ => (client, Dialect::Own),
    }
}

/// Members that its status has and ours hasn't.
fn is_reasonix(status: &Value) -> bool {
    ["hostId", "label", "toolApprovalMode"]
        .iter()
        .all(|member| status[member].is_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rs_03_only_a_host_that_says_so_is_another_one() {
        let theirs = json!({ "hostId": "local", "label": "m", "toolApprovalMode": "read-only" });
        assert!(is_reasonix(&theirs));
        for ours in [
            json!({ "sessionId": "", "running": false, "mode": "ask" }),
            json!({ "hostId": "local", "label": null, "toolApprovalMode": "x" }),
            json!([]),
            json!("ok"),
        ] {
            assert!(!is_reasonix(&ours), "{ours}");
        }
    }
}
