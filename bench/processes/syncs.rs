//! Syncs of the session's log for one tool call, counted under a host in this process. Floor: the
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
        for (tool, arguments) in [
            ("write_file", r#"{"path":"a.txt","content":"CALL"}"#),
            ("read_file", r#"{"path":"a.txt"}"#),
            ("shell", r#"{"command":"echo CALL"}"#),
        ] {
            let steps: Vec<Step> = (0..CALLS)
                .map(|call| {
                    let arguments = arguments.replace("CALL", &call.to_string());
                    Step::default().with_call(Call::new(&format!("c{call}"), tool, &arguments))
                })
                .collect();
            let with = counted.turn(&steps).await?;
            let calls = with - without;
            ensure!(calls % CALLS == 0, "{calls} syncs for {CALLS} calls");
            table.aimed(
                &format!("log syncs of a call of {tool}"),
                (calls / CALLS).to_string(),
                "2 (before the start, and for the result)",
                "at most 2",
                calls / CALLS <= AIM,
            );
        }
        table.row(
            "log syncs of a turn without calls",
            without.to_string(),
            "2 (the message, and the turn's end)",
        );
        counted.host.close().await;
        anyhow::Ok(())
    })
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
    async fn turn(&self, steps: &[Step]) -> anyhow::Result<u64> {
        for step in steps {
            self.server.push(step.clone());
        }
        self.server.push(Step::text("done"));
        let before = self.storage.count(Operation::Sync);
        let reader = self.host.hub().reader(false, None, None);
        let submit = Submit {
            input: "do it".to_owned(),
            submission_id: None,
        };
        self.host.submit(&Selector::default(), submit).await?;
        tokio::time::timeout(LIMIT, completed(reader, steps.len()))
            .await
            .context("the turn did not end")??;
        Ok(self.storage.count(Operation::Sync) - before)
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
