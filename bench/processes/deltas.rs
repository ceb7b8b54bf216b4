//! A delta's way from the model's server to a client, by the time that the server writes into it.
//! Floor: the same client reads the model's server directly. Both run on this machine, in the same
//! order, with the same text.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, ensure};
use futures_util::StreamExt;
use holdfast_bench::place::{self, Programs};
use holdfast_bench::samples::Samples;
use holdfast_bench::table::{Table, time};
use holdfast_testkit::model_server::{ModelServer, NOW_US, Step};
use holdfast_testkit::{Host, TestClient};
use reqwest::{Method, RequestBuilder};
use serde_json::json;

use crate::host;

const ROUNDS: usize = 3;
const AIM: Duration = Duration::from_millis(1);
/// A turn that takes longer than this is a defect.
const LIMIT: Duration = Duration::from_secs(120);

pub(crate) fn measure(programs: &Programs, table: &mut Table) -> anyhow::Result<()> {
    let scratch = place::scratch()?;
    let data = scratch.path().join("data");
    let workspace = scratch.path().join("workspace");
    std::fs::create_dir_all(&data)?;
    std::fs::create_dir(&workspace)?;
    let server = ModelServer::start(Vec::<Step>::new());
    configure(&data, &server)?;
    let host = Host::start(host::options(programs, &data, &workspace))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let client = host.client();
        client
            .post_ok("/sessions", &json!({ "model": "bench/model" }))
            .await;
        for (gap_ms, count) in [(1, 2000), (20, 300)] {
            let (mut floor, mut figure) = (Samples::default(), Samples::default());
            for _ in 0..ROUNDS {
                server.push(step(gap_ms, count));
                floor.extend(collect(direct(&server), count, async {}).await?);
                server.push(step(gap_ms, count));
                let submit = async {
                    client
                        .post_ok("/submit", &json!({ "input": "go on" }))
                        .await;
                };
                let events = client.request(Method::GET, "/events?all=1");
                figure.extend(collect(events, count, submit).await?);
                ended(&client).await?;
            }
            let over = figure.median().saturating_sub(floor.median());
            table.aimed(
                &format!("delta from the model to a client, every {gap_ms} ms"),
                both(&figure),
                both(&floor),
                "median under 1 ms over the floor",
                over < AIM,
            );
        }
        anyhow::Ok(())
    })
}

fn both(samples: &Samples) -> String {
    format!(
        "{} (p99 {}, {} deltas)",
        time(samples.median()),
        time(samples.p99()),
        samples.count()
    )
}

fn configure(data: &Path, server: &ModelServer) -> anyhow::Result<()> {
    let text = format!("[providers.bench]\nbase_url = \"{}\"\n", server.url());
    Ok(std::fs::write(data.join("config.toml"), text)?)
}

/// A reply whose every piece says when it was written.
fn step(gap_ms: u64, count: usize) -> Step {
    Step {
        text: vec![format!("t={NOW_US}; and some words "); count],
        gap_ms,
        ..Step::default()
    }
}

fn direct(server: &ModelServer) -> RequestBuilder {
    reqwest::Client::new()
        .post(format!("{}/chat/completions", server.url()))
        .body("{}")
}

/// Opens a stream, does `then`, and reads until `count` times have come.
async fn collect(
    request: RequestBuilder,
    count: usize,
    then: impl Future<Output = ()>,
) -> anyhow::Result<Samples> {
    let response = request.send().await?.error_for_status()?;
    let reading = async {
        let mut samples = Samples::default();
        let mut body = response.bytes_stream();
        let mut pending = Vec::new();
        while samples.count() < count {
            let bytes = body.next().await.context("the stream ended early")??;
            let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
            pending.extend_from_slice(&bytes);
            while let Some(end) = pending.windows(2).position(|two| two == b"\n\n") {
                let event: Vec<u8> = pending.drain(..end + 2).collect();
                for written in times(&String::from_utf8_lossy(&event)) {
                    samples.push(now.saturating_sub(Duration::from_micros(written)));
                }
            }
        }
        anyhow::Ok(samples)
    };
    let both = async { tokio::join!(reading, then) };
    let (samples, ()) = tokio::time::timeout(LIMIT, both).await?;
    let samples = samples?;
    ensure!(samples.count() == count, "{} deltas came", samples.count());
    Ok(samples)
}

/// The times in one event, but for the stored message, which repeats them all.
fn times(event: &str) -> Vec<u64> {
    if event.contains("\"kind\":\"message\"") {
        return Vec::new();
    }
    event
        .split("t=")
        .skip(1)
        .filter_map(|rest| rest.split_once(';'))
        .filter_map(|(number, _)| number.parse().ok())
        .collect()
}

/// Waits until the turn has ended.
async fn ended(client: &TestClient) -> anyhow::Result<()> {
    let mut ticks = tokio::time::interval(Duration::from_millis(20));
    let waiting = async {
        loop {
            ticks.tick().await;
            let status = client.get_ok("/status").await;
            if status["running"] == false {
                return status;
            }
        }
    };
    let status = tokio::time::timeout(LIMIT, waiting).await?;
    let error = &status["last_error"];
    ensure!(error.is_null(), "the turn failed: {error}");
    Ok(())
}
