//! Who an attempt is: its identity, its idempotency key, and the triple by which two calls are
//! "the same effect" (TR-06, TR-07).

use serde::{Deserialize, Serialize};

use crate::canonical;

/// TR-06: the identity of one execution of one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
pub struct Identity {
    /// The session in which the call was made; a copy of a session keeps it.
    pub session_id: String,
    /// The turn.
    pub turn_id: String,
    /// Model request within the turn, from 1.
    pub step: u32,
    /// Our id of the call, unique in the session.
    pub call_id: String,
    /// Tool name after aliases and proxies.
    pub canonical_tool: String,
    /// SHA-256 (hex) of the canonical arguments.
    pub argument_digest: String,
    /// 16 random bytes, hex.
    pub attempt_id: String,
    /// `session:<id>`, or what the tool's verifier supplies; never empty.
    pub resource_scope: String,
}

/// "The same effect" (Words of the contract).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Triple {
    /// Tool name after aliases.
    pub canonical_tool: String,
    /// SHA-256 (hex) of the canonical arguments.
    pub argument_digest: String,
    /// What the effect is on.
    pub resource_scope: String,
}

impl Identity {
    /// TR-07: SHA-256 (hex) of the canonical identity with `attempt_id` blank, so that a retry
    /// keeps it only by copying it.
    pub fn idempotency_key(&self) -> String {
        canonical::digest(&Self {
            attempt_id: String::new(),
            ..self.clone()
        })
    }

    /// The triple by which this attempt is compared: the same in the session and in a copy of it.
    pub fn effect(&self) -> Triple {
        self.triple().within(&self.session_id)
    }

    /// The triple of this attempt.
    pub fn triple(&self) -> Triple {
        Triple {
            canonical_tool: self.canonical_tool.clone(),
            argument_digest: self.argument_digest.clone(),
            resource_scope: self.resource_scope.clone(),
        }
    }
}

impl Triple {
    /// The scope "this whole session", made by the session `session_id`, without that session's
    /// name: a copy keeps the receipts of its original, and the same call in it is the same effect.
    #[must_use]
    pub fn within(self, session_id: &str) -> Self {
        if self.resource_scope == whole_session(session_id) {
            Self {
                resource_scope: whole_session(""),
                ..self
            }
        } else {
            self
        }
    }
}

fn whole_session(session_id: &str) -> String {
    format!("session:{session_id}")
}

/// TR-06: the scope of a call. A tool without a verifier acts on the session.
///
/// # Errors
/// A tool that supplies an empty scope is a defect, and its call is refused.
pub fn resource_scope(session_id: &str, supplied: Option<&str>) -> Result<String, EmptyScope> {
    match supplied {
        None => Ok(whole_session(session_id)),
        Some("") => Err(EmptyScope),
        Some(scope) => Ok(scope.to_owned()),
    }
}

/// A tool supplied an empty resource scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the tool named no resource for its effect; nothing was run; this is a defect of the tool")]
pub struct EmptyScope;

/// TR-06: our call id for a provider's: its own when it is non-empty and new in this session, else
/// made unique with `fresh` (16 random bytes, hex).
pub fn call_id(provider_id: &str, taken: impl Fn(&str) -> bool, fresh: &str) -> String {
    if !provider_id.is_empty() && !taken(provider_id) {
        provider_id.to_owned()
    } else {
        format!("call_{fresh}")
    }
}
