//! Tools that a host brings along besides the built-in ones: the seam for tools that act on something
//! other than files and commands.
//!
//! Guarantee: such a call goes through the same checks, receipts and barrier as any other; its effect
//! may be run again only by the word of its own verifier (TR-36).

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use holdfast_domain::transcript::outbound::ToolSpec;
use serde_json::Value;

use crate::context::Context;
use crate::outcome::ToolOutcome;
use crate::verifier::Verifier;

/// A tool of the host's own.
#[async_trait]
pub trait BroughtTool: fmt::Debug + Send + Sync {
    /// What a model is told. The name must not be a built-in tool's.
    fn spec(&self) -> ToolSpec;

    /// TR-06: the name in identities, after aliases.
    fn canonical_name(&self) -> String {
        self.spec().name
    }

    /// No effect outside the session.
    fn read_only(&self) -> bool;

    /// TR-04: checks arguments that passed the raw checks; answers one line for cards.
    ///
    /// # Errors
    /// What is wrong, in words for the model. The call never starts.
    fn check(&self, arguments: &Value) -> Result<String, String>;

    /// TR-06: the resource that these arguments act on; `None` means the session.
    fn scope(&self, arguments: &Value) -> Option<String>;

    /// Runs a checked call to its end. The key for services that know such keys is in the context
    /// (TR-07).
    async fn execute(&self, arguments: &Value, context: &Context) -> ToolOutcome;

    /// What can tell of an effect afterwards. Without one, the call is never run again.
    fn verifier(&self) -> Option<Arc<dyn Verifier>>;
}
