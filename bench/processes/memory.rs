//! What a host keeps in memory (Linux): after its start, after a list, with ten sessions open. Floor:
//! the same host without a session on disk.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use holdfast_bench::place::Programs;
use holdfast_bench::table::Table;
use holdfast_testkit::Host;
use holdfast_testkit::http::TestClient;
use serde_json::json;

use crate::stored::{SESSIONS, Stored, check_list, session_id};

const OPENED: usize = 10;
const AIM_KIB: u64 = 25 * 1024;
/// Memory counts when it was the same for so many looks.
const SAME: usize = 4;
const BETWEEN_LOOKS: Duration = Duration::from_millis(250);

pub(crate) fn measure(
    programs: &Programs,
    stored: &Stored,
    table: &mut Table,
) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let empty = Host::start(stored.host(programs, &stored.empty()))?;
        let floor = settled(empty.pid()).await?;
        drop(empty);

        let host = Host::start(stored.host(programs, &stored.full()))?;
        let client = host.client();
        let idle = settled(host.pid()).await?;
        table.aimed(
            &format!("memory, idle after the start, {SESSIONS} sessions on disk"),
            idle.text(),
            format!("{} without sessions", floor.text()),
            "resident under 25 MiB",
            idle.resident < AIM_KIB,
        );
        check_list(&client.get_ok("/sessions").await)?;
        let listed = settled(host.pid()).await?;
        table.row("memory after a GET /sessions", listed.text(), idle.text());
        open(&client).await?;
        let opened = settled(host.pid()).await?;
        table.row(
            &format!("memory with {OPENED} sessions opened"),
            opened.text(),
            idle.text(),
        );
        Ok(())
    })
}

async fn open(client: &TestClient) -> anyhow::Result<()> {
    for number in 0..OPENED {
        let id = session_id(number * (SESSIONS / OPENED));
        client.post_ok("/resume", &json!({ "sessionId": id })).await;
    }
    let states = client.get_ok("/runtime-states").await;
    let count = states["sessions"].as_array().map_or(0, Vec::len);
    ensure!(count == OPENED, "{count} sessions are open");
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Memory {
    /// VmRSS in KiB.
    resident: u64,
    /// PSS in KiB: pages shared with other processes count in part.
    proportional: u64,
}

impl Memory {
    fn of(pid: u32) -> anyhow::Result<Self> {
        let folder = Path::new("/proc").join(pid.to_string());
        Ok(Self {
            resident: kib(&folder.join("status"), "VmRSS:")?,
            proportional: kib(&folder.join("smaps_rollup"), "Pss:")?,
        })
    }

    fn text(self) -> String {
        #[allow(clippy::cast_precision_loss, reason = "far below 2^52")]
        let mib = |kib: u64| kib as f64 / 1024.0;
        format!(
            "{:.1} MiB resident, {:.1} PSS",
            mib(self.resident),
            mib(self.proportional)
        )
    }
}

/// The memory once it has stopped changing.
async fn settled(pid: u32) -> anyhow::Result<Memory> {
    let mut ticks = tokio::time::interval(BETWEEN_LOOKS);
    let (mut last, mut same) = (Memory::of(pid)?, 0);
    while same < SAME {
        ticks.tick().await;
        let now = Memory::of(pid)?;
        same = if now.resident == last.resident {
            same + 1
        } else {
            0
        };
        last = now;
    }
    Ok(last)
}

fn kib(file: &Path, name: &str) -> anyhow::Result<u64> {
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("{} can't be read", file.display()))?;
    text.lines()
        .find_map(|line| line.strip_prefix(name))
        .and_then(|rest| rest.trim().strip_suffix(" kB"))
        .and_then(|number| number.trim().parse().ok())
        .with_context(|| format!("no {name} in {}", file.display()))
}
