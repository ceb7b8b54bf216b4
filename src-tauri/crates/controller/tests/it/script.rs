//! A model that says what a test wrote down, and remembers what it was asked.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use futures_util::StreamExt;
use futures_util::stream;
use holdfast_api::ApiError;
use holdfast_controller::models::Models;
use holdfast_domain::transcript::outbound::OutboundMessage;
use holdfast_provider::{
    ModelCall, ModelClient, ModelEvent, ModelReply, ModelRequest, ModelStream, ProviderError,
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;

/// One item of a reply.
pub(crate) type Item = Result<ModelEvent, ProviderError>;

/// What the model does when it is asked.
pub(crate) enum Step {
    /// These items, and then the end of the stream.
    Items(Vec<Item>),
    /// What a test sends while it streams.
    Live(mpsc::UnboundedReceiver<Item>),
    /// A defect before the first item.
    PanicAtOnce,
    /// A defect behind these items.
    PanicAfter(Vec<Item>),
}

/// The script. When it has come to its end, the model says "done".
#[derive(Default)]
pub(crate) struct Script {
    steps: Mutex<VecDeque<Step>>,
    requests: Mutex<Vec<ModelRequest>>,
}

impl Script {
    /// The next reply is a text.
    pub(crate) fn says(&self, text: &str) -> &Self {
        self.step(Step::Items(vec![
            Ok(ModelEvent::Text(text.to_owned())),
            finished(text, Vec::new()),
        ]))
    }

    /// The next reply is these calls: name and argument text.
    pub(crate) fn calls(&self, calls: &[(&str, &str)]) -> &Self {
        let calls = calls
            .iter()
            .enumerate()
            .map(|(place, (name, arguments))| ModelCall {
                provider_id: format!("p{place}"),
                name: (*name).to_owned(),
                arguments: (*arguments).to_owned(),
            })
            .collect();
        self.step(Step::Items(vec![finished("", calls)]))
    }

    /// The next reply is one command.
    pub(crate) fn runs(&self, command: &str) -> &Self {
        self.calls(&[("shell", &shell(command))])
    }

    /// The next reply is what a test sends.
    pub(crate) fn live(&self) -> mpsc::UnboundedSender<Item> {
        let (send, receive) = mpsc::unbounded_channel();
        self.step(Step::Live(receive));
        send
    }

    /// What was not said yet is never said.
    pub(crate) fn forget(&self) {
        self.steps.lock().unwrap().clear();
    }

    pub(crate) fn step(&self, step: Step) -> &Self {
        self.steps.lock().unwrap().push_back(step);
        self
    }

    /// What the model was asked so far.
    pub(crate) fn requests(&self) -> Vec<ModelRequest> {
        self.requests.lock().unwrap().clone()
    }

    /// The tool results of the latest request, by call id.
    pub(crate) fn results(&self) -> Vec<(String, String)> {
        let requests = self.requests();
        requests
            .last()
            .map(|request| {
                request
                    .messages
                    .iter()
                    .filter_map(|message| match message {
                        OutboundMessage::Tool { call_id, text, .. } => {
                            Some((call_id.clone(), text.clone()))
                        }
                        _ => None,
                    })
                    .collect()
            })
            .unwrap_or_default()
    }

    /// The text of the latest tool result that the model was given.
    pub(crate) fn last_result(&self) -> String {
        self.results()
            .pop()
            .map(|(_, text)| text)
            .unwrap_or_default()
    }
}

/// Arguments of a command.
pub(crate) fn shell(command: &str) -> String {
    serde_json::json!({ "command": command }).to_string()
}

/// Arguments of a write.
pub(crate) fn write(path: &str, content: &str) -> String {
    serde_json::json!({ "path": path, "content": content }).to_string()
}

/// The last item of a reply.
pub(crate) fn finished(text: &str, calls: Vec<ModelCall>) -> Item {
    Ok(ModelEvent::Finished(ModelReply {
        text: text.to_owned(),
        finish_reason: if calls.is_empty() {
            "stop"
        } else {
            "tool_calls"
        }
        .to_owned(),
        calls,
        ..ModelReply::default()
    }))
}

/// Hands the script to a host.
pub(crate) struct Scripted(pub(crate) Arc<Script>);

impl Models for Scripted {
    fn client(&self, model: &str) -> Result<(Arc<dyn ModelClient>, String), ApiError> {
        Ok((Arc::new(Client(Arc::clone(&self.0))), model.to_owned()))
    }
}

struct Client(Arc<Script>);

impl ModelClient for Client {
    fn name(&self) -> &str {
        "scripted"
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        self.0.requests.lock().unwrap().push(request);
        let step = self.0.steps.lock().unwrap().pop_front();
        match step {
            None => stream::iter(vec![finished("done", Vec::new())]).boxed(),
            Some(Step::Items(items)) => stream::iter(items).boxed(),
            Some(Step::Live(items)) => UnboundedReceiverStream::new(items).boxed(),
            Some(Step::PanicAtOnce) => panic!("a defect of the client, on purpose"),
            Some(Step::PanicAfter(items)) => stream::iter(items)
                .chain(stream::once(async {
                    panic!("a defect of the client in the middle, on purpose")
                }))
                .boxed(),
        }
    }
}
