//! What a retry is walked through: a sink behind HTTP, and a file.

use std::cell::RefCell;
use std::sync::Arc;

use holdfast_testkit::Sink;
use holdfast_testkit::sink::{Conduct, Sight};

use crate::bench::{Bench, Session};
use crate::recovery::{Ending, with_calls};
use crate::script::write;
use crate::sink_tool::{NAME, SinkTool};
use crate::walk::{Stand, World};

/// A sink behind HTTP, which knows keys and senders.
pub(crate) struct SinkWorld {
    pub(crate) sink: Sink,
}

impl SinkWorld {
    pub(crate) fn new(bench: &mut Bench) -> Self {
        let sink = Sink::start();
        bench.retry = true;
        bench.tools = vec![Arc::new(SinkTool::new(sink.client()))];
        Self { sink }
    }
}

impl World for SinkWorld {
    async fn begin(&self, bench: &Bench) -> (Session, String) {
        let mut session = bench.session("full").await;
        self.sink.conduct(Conduct::HoldAndHangUp);
        bench.script.calls(&[(NAME, r#"{"thing":"t"}"#)]);
        session.turn("put it").await;
        self.sink.conduct(Conduct::Apply);
        let attempt = session.open_attempt().await;
        assert_eq!(self.sink.asked().len(), 1);
        (session, attempt)
    }

    fn make(&self, stand: Stand, attempt: &str) -> bool {
        self.sink.sight(Sight::Clear);
        match stand {
            Stand::Dark => self.sink.sight(Sight::Dark),
            // The sink has the request, and may still do it.
            Stand::AbsentOpen => {}
            Stand::AbsentFenced => self.sink.fence(attempt),
            Stand::Present => self.sink.commit_held(),
        }
        true
    }

    fn effects(&self) -> usize {
        self.sink.effects().len()
    }
}

/// A write of `f` from `before` to `after`.
pub(crate) struct FileWorld {
    tool: &'static str,
    file: RefCell<std::path::PathBuf>,
}

impl FileWorld {
    pub(crate) fn new(bench: &mut Bench, tool: &'static str) -> Self {
        bench.retry = true;
        Self {
            tool,
            file: RefCell::new(bench.workspace().join("f")),
        }
    }

    pub(crate) fn put(&self, content: &str) {
        let file = self.file.borrow();
        if file.is_dir() {
            std::fs::remove_dir(&*file).unwrap();
        }
        std::fs::write(&*file, content).unwrap();
    }
}

impl World for FileWorld {
    async fn begin(&self, bench: &Bench) -> (Session, String) {
        self.put("before");
        let arguments = if self.tool == "edit_file" {
            r#"{"path":"f","edits":[{"old_text":"before","new_text":"after"}]}"#.to_owned()
        } else {
            write("f", "after")
        };
        let (session, mut attempts) =
            with_calls(bench, &[(self.tool, &arguments)], Ending::EffectUnknown).await;
        (session, attempts.remove(0))
    }

    fn make(&self, stand: Stand, _attempt: &str) -> bool {
        match stand {
            Stand::Dark => {
                let file = self.file.borrow();
                std::fs::remove_file(&*file).unwrap();
                std::fs::create_dir(&*file).unwrap();
            }
            // While a write's executor lives it is in flight, and no retry is looked at: without one
            // an unchanged file is fenced.
            Stand::AbsentOpen => return false,
            Stand::AbsentFenced => self.put("before"),
            Stand::Present => self.put("after"),
        }
        true
    }

    fn effects(&self) -> usize {
        let now = std::fs::read_to_string(&*self.file.borrow()).unwrap_or_default();
        usize::from(now == "after")
    }
}
