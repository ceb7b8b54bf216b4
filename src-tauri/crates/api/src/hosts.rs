//! Other machines whose sessions tabs can show: how they are reached, and how their connections
//! stand (RS-36).

use serde::{Deserialize, Serialize};

/// How a host is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum HostWay {
    /// Directly, with a token that is kept where keys are kept.
    Direct {
        /// `https://host:port`; `http://` for this machine alone.
        url: String,
    },
    /// Through a tunnel that the system's `ssh` opens.
    Ssh {
        /// As `ssh` takes it: `user@host`, or a name of the ssh configuration.
        destination: String,
        /// The `holdfast` over there; found by its PATH when empty.
        #[serde(default)]
        program: String,
    },
}

/// How a connection stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "snake_case")]
pub enum ConnectionState {
    /// It is being made.
    Connecting,
    /// It stands.
    Connected,
    /// It is gone; the next try comes by itself.
    Waiting,
    /// It is gone, and no try comes by itself: a person has to mend something.
    Refused,
}

/// A host with its connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct HostView {
    /// Its id, stable over restarts.
    pub host_id: String,
    /// Name for display.
    pub name: String,
    /// How it is reached.
    pub way: HostWay,
    /// A token is stored.
    pub has_token: bool,
    /// How the connection stands.
    pub state: ConnectionState,
    /// Stable code of what is wrong; empty when nothing is.
    pub code: String,
    /// What is wrong, for a person; empty when nothing is.
    pub message: String,
    /// Milliseconds until the next try; absent when none waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[specta(type = Option<f64>)]
    pub retry_in_ms: Option<u64>,
    /// RS-37: states that were older than what was known.
    #[specta(type = f64)]
    pub stale: u64,
    /// RS-37: contradictions.
    #[specta(type = f64)]
    pub conflicts: u64,
    /// RS-37: reads that failed or could not be understood.
    #[specta(type = f64)]
    pub failures: u64,
}

/// All hosts, in the order in which they were added.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct HostList {
    /// The hosts.
    pub hosts: Vec<HostView>,
}

/// A host to be added, changed or tried. `Debug` does not show the token.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HostChange {
    /// Which one; empty for a new one.
    #[serde(default)]
    pub host_id: String,
    /// Name for display, 1…60 characters.
    pub name: String,
    /// How it is reached.
    pub way: HostWay,
    /// The token; empty leaves the stored one. Not used through a tunnel, which brings its own.
    #[serde(default)]
    pub token: String,
}

impl std::fmt::Debug for HostChange {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("HostChange")
            .field("host_id", &self.host_id)
            .field("name", &self.name)
            .field("way", &self.way)
            .finish_non_exhaustive()
    }
}

/// A host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HostRef {
    /// Its id.
    pub host_id: String,
}

/// How a trial of a host went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct HostCheck {
    /// It answered, and lets us in.
    pub ok: bool,
    /// Stable code of what is wrong.
    pub code: String,
    /// For a person.
    pub message: String,
}
