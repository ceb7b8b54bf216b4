//! Syncs of a session's files for one tool call, counted under a host in this process. Floor: the
//! least that the order of effects allows, one before the call starts and one for its result.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use holdfast_api::SessionHost;
use holdfast_api::host::Selector;
use holdfast_api::session::{CreateSession, Submit};
use holdfast_bench::place;
use holdfast_bench::table::Table;
use holdfast_controller::config::Config;
use holdfast_controller::hub::Reader;
use holdfast_controller::models::{ConfiguredModels, RequestLimits};
use holdfast_controller::source::SystemSource;
use holdfast_controller::{Host, HostOptions};
use holdfast_files::fault::Operation;
use holdfast_files::{Disk, Faulty};
use holdfast_testkit::model_server::{Call, ModelServer, Step};

const CALLS: u64 = 5;
const AIM: u64 = 2;
const LIMIT: Duration = Duration::from_secs(60);

pub(crate) fn measure(table: &mut Table) -> anyhow::Result<()> {
    let scratch = place::scratch()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let counted = Counted::new(scratch.path()).await?;
        let without = counted.turn(&[]).await?;
        for (what, tool, arguments) in [
            (
                "write_file",
                "write_file",
                r#"{"path":"a.txt","content":"CALL"}"#,
            ),
            ("read_file", "read_file", r#"{"path":"a.txt"}"#),
            (
                "shell without output",
                "shell",
                r#"{"command":"true CALL"}"#,
            ),
            ("shell with output", "shell", r#"{"command":"echo CALL"}"#),
        ] {
            let steps: Vec<Step> = (0..CALLS)
                .map(|call| {
                    let arguments = arguments.replace("CALL", &call.to_string());
                    Step::default().with_call(Call::new(&format!("c{call}"), tool, &arguments))
                })
                .collect();
            let each = counted.turn(&steps).await?.of_each(without)?;
            table.aimed(
                &format!("syncs of a call of {what}"),
                each.text(),
                "2 of the log (before the start, and for the result)",
                "at most 2 of the log",
                each.log <= AIM,
            );
        }
        table.row(
            "syncs of a turn without calls",
            without.text(),
            "2 of the log (the message, and the turn's end)",
        );
        counted.host.close().await;
        anyhow::Ok(())
    })
}

/// Syncs in a session's folder.
#[derive(Debug, Clone, Copy)]
struct Syncs {
    log: u64,
    /// Of files beside the log: whole outputs. Each is synced once, when it is made.
    beside: u64,
    folders: u64,
}

impl Syncs {
    /// So far.
    fn counted(storage: &Faulty) -> Self {
        let beside = storage.count(Operation::CreateNew);
        Self {
            log: storage.count(Operation::Sync) - beside,
            beside,
            folders: storage.count(Operation::SyncFolder),
        }
    }

    fn since(self, before: Self) -> Self {
        Self {
            log: self.log - before.log,
            beside: self.beside - before.beside,
            folders: self.folders - before.folders,
        }
    }

    /// The share of one call in a turn.
    fn of_each(self, without: Self) -> anyhow::Result<Self> {
        let calls = self.since(without);
        let even = [calls.log, calls.beside, calls.folders]
            .iter()
            .all(|count| count % CALLS == 0);
        ensure!(even, "{calls:?} for {CALLS} calls");
        Ok(Self {
            log: calls.log / CALLS,
            beside: calls.beside / CALLS,
            folders: calls.folders / CALLS,
        })
    }

    fn text(self) -> String {
        let mut text = format!("{} of the log", self.log);
        if self.beside + self.folders > 0 {
            text.push_str(&format!(
                ", {} of an output file, {} of folders",
                self.beside, self.folders
            ));
        }
        text
    }
}

struct Counted {
    host: Host,
    storage: Faulty,
    server: ModelServer,
}

impl Counted {
    async fn new(folder: &Path) -> anyhow::Result<Self> {
        let server = ModelServer::start(Vec::<Step>::new());
        let workspace = folder.join("workspace");
        std::fs::create_dir(&workspace)?;
        let text = format!("[providers.bench]\nbase_url = \"{}\"\n", server.url());
        let config = Config::parse(&text, Path::new("config.toml"))?;
        let models = ConfiguredModels::new(config.clone(), RequestLimits::default());
        let storage = Faulty::new(Arc::new(Disk));
        let mut options = HostOptions::new(
            folder.join("data"),
            config,
            Arc::new(SystemSource),
            Arc::new(models),
        );
        options.workspace = Some(workspace);
        options.storage = Arc::new(storage.clone());
        let host = Host::new(options)?;
        host.create_session(CreateSession {
            model: Some("bench/model".to_owned()),
            mode: Some("full".to_owned()),
            ..CreateSession::default()
        })
        .await?;
        Ok(Self {
            host,
            storage,
            server,
        })
    }

    /// Syncs of one turn that makes these replies and then says a word.
    async fn turn(&self, steps: &[Step]) -> anyhow::Result<Syncs> {
        for step in steps {
            self.server.push(step.clone());
        }
        self.server.push(Step::text("done"));
        let before = Syncs::counted(&self.storage);
        let reader = self.host.hub().reader(false, None, None);
        let submit = Submit {
            input: "do it".to_owned(),
            submission_id: None,
        };
        self.host.submit(&Selector::default(), submit).await?;
        tokio::time::timeout(LIMIT, completed(reader, steps.len()))
            .await
            .context("the turn did not end")??;
        Ok(Syncs::counted(&self.storage).since(before))
    }
}

/// Reads to the turn's end; every call must have run to its end.
async fn completed(mut reader: Reader, calls: usize) -> anyhow::Result<()> {
    let mut results = 0;
    loop {
        for frame in reader.next().await {
            let frame: serde_json::Value = serde_json::from_str(&frame.data)?;
            match frame["kind"].as_str() {
                Some("tool_result") => {
                    let state = &frame["tool"]["state"];
                    ensure!(state == "completed", "a call ended as {frame}");
                    results += 1;
                }
                Some("turn_done") => {
                    ensure!(
                        frame["status"] == "completed" && results == calls,
                        "{results} of {calls} calls, then {frame}"
                    );
                    return Ok(());
                }
                Some(_) | None => {}
            }
        }
    }
}
