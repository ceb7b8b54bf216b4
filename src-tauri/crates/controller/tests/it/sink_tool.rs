//! A tool that acts on the authoritative sink of the testkit, and its verifier. Only tests have it.

use std::sync::Arc;

use async_trait::async_trait;
use holdfast_domain::recovery::attempt::{EFFECT_UNKNOWN, Evidence};
use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_domain::recovery::retry::Presence;
use holdfast_domain::transcript::outbound::ToolSpec;
use holdfast_testkit::SinkClient;
use holdfast_tools::{BroughtTool, Context, ToolOutcome, Verdict, Verifier};
use serde_json::{Value, json};

pub(crate) const NAME: &str = "put";

/// The tool.
#[derive(Debug, Clone)]
pub(crate) struct SinkTool {
    client: SinkClient,
    canonical: &'static str,
    place: &'static str,
}

impl SinkTool {
    pub(crate) fn new(client: SinkClient) -> Self {
        Self {
            client,
            canonical: NAME,
            place: "sink:one",
        }
    }

    /// As after an update of the program that gave the tool another name in identities.
    pub(crate) fn renamed(self, canonical: &'static str) -> Self {
        Self { canonical, ..self }
    }

    /// Its arguments mean another sink now.
    pub(crate) fn moved(self, place: &'static str) -> Self {
        Self { place, ..self }
    }
}

#[async_trait]
impl BroughtTool for SinkTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: NAME.to_owned(),
            description: "puts a thing into the sink".to_owned(),
            parameters: json!({ "type": "object", "properties": { "thing": { "type": "string" } } }),
        }
    }

    fn canonical_name(&self) -> String {
        self.canonical.to_owned()
    }

    fn read_only(&self) -> bool {
        false
    }

    fn check(&self, arguments: &Value) -> Result<String, String> {
        arguments["thing"]
            .as_str()
            .map(str::to_owned)
            .ok_or_else(|| "thing: it is missing".to_owned())
    }

    fn scope(&self, _arguments: &Value) -> Option<String> {
        Some(self.place.to_owned())
    }

    async fn execute(&self, _arguments: &Value, context: &Context) -> ToolOutcome {
        let effect = self
            .client
            .effect(&context.idempotency_key, &context.attempt_id);
        tokio::select! {
            answer = effect => match answer {
                Ok(_) => ToolOutcome::bare(AttemptState::Completed, "it is put".to_owned()),
                Err(error) => ToolOutcome {
                    effect_summary: EFFECT_UNKNOWN.to_owned(),
                    ..ToolOutcome::bare(AttemptState::Failed, error)
                },
            },
            // TR-10: that nobody listens any more is no end of the request.
            () = context.cancel.cancelled() => {
                ToolOutcome::bare(AttemptState::Unknown, "stopped while the sink worked".to_owned())
            }
        }
    }

    fn verifier(&self) -> Option<Arc<dyn Verifier>> {
        Some(Arc::new(self.clone()))
    }
}

#[async_trait]
impl Verifier for SinkTool {
    async fn scope(&self, arguments: &Value) -> Option<String> {
        BroughtTool::scope(self, arguments)
    }

    async fn inspect(&self, key: &str, _arguments: &Value) -> Verdict {
        match self.client.look(key).await {
            Ok((present, fenced)) => Verdict {
                presence: if present {
                    Presence::Present
                } else {
                    Presence::Absent
                },
                fenced: fenced && !present,
                summary: "the sink says so".to_owned(),
                evidence: Evidence::None,
            },
            Err(error) => Verdict::unknown(&error),
        }
    }
}
