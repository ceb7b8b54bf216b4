//! `GET /runtime-states` of a host with 1,000 open sessions (RS-26), over one connection that stays
//! open. Floor: `GET /healthz` on the same connection, asked in turn.

use std::time::Instant;

use anyhow::ensure;
use holdfast_bench::place::{self, Programs};
use holdfast_bench::samples::Samples;
use holdfast_bench::table::{Table, both};
use holdfast_testkit::{Host, TestClient};
use reqwest::Method;
use serde_json::{Value, json};

use crate::host;

const SESSIONS: usize = 1000;
const ROUNDS: usize = 500;
const AIM: std::time::Duration = std::time::Duration::from_millis(5);

pub(crate) fn measure(programs: &Programs, table: &mut Table) -> anyhow::Result<()> {
    let scratch = place::scratch()?;
    let data = scratch.path().join("data");
    let workspace = scratch.path().join("workspace");
    std::fs::create_dir_all(&data)?;
    std::fs::create_dir(&workspace)?;
    let host = Host::start(host::options(programs, &data, &workspace))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let client = host.client();
        for _ in 0..SESSIONS {
            client.post_ok("/sessions", &json!({})).await;
        }
        let (mut floor, mut figure) = (Samples::default(), Samples::default());
        let mut bytes = 0;
        for _ in 0..ROUNDS {
            timed(&client, "/healthz", &mut floor).await?;
            bytes = timed(&client, "/runtime-states", &mut figure).await?.len();
        }
        let states: Value = client.get_ok("/runtime-states").await;
        let count = states["sessions"].as_array().map_or(0, Vec::len);
        ensure!(count == SESSIONS, "{count} sessions came");
        table.aimed(
            &format!("GET /runtime-states, {SESSIONS} open sessions, {bytes} bytes"),
            both(&figure),
            format!("{} for GET /healthz", both(&floor)),
            "median under 5 ms",
            figure.median() < AIM,
        );
        anyhow::Ok(())
    })
}

/// Asks and reads the whole reply, without looking into it.
async fn timed(client: &TestClient, path: &str, into: &mut Samples) -> anyhow::Result<Vec<u8>> {
    let request = client.request(Method::GET, path);
    let since = Instant::now();
    let body = request.send().await?.error_for_status()?.bytes().await?;
    into.push(since.elapsed());
    Ok(body.to_vec())
}
