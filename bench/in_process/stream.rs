//! A model's event stream, read over loopback to its last event. Floor: the same bytes from the same
//! server, not looked at.

use std::time::{Duration, Instant};

use anyhow::ensure;
use criterion::Criterion;
use futures_util::StreamExt;
use holdfast_sse::{SseLimits, open};
use holdfast_testkit::model_server::{Fault, ModelServer, Step};
use reqwest::RequestBuilder;
use tokio::runtime::Runtime;

const EVENTS: usize = 10_000;

pub(crate) fn measure(criterion: &mut Criterion) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let body: String = (0..EVENTS)
        .map(|number| {
            let delta = serde_json::json!({ "content": format!("word {number} ") });
            let chunk = serde_json::json!({
                "id": "chatcmpl-1",
                "object": "chat.completion.chunk",
                "created": 0,
                "model": "m",
                "choices": [{ "index": 0, "delta": delta, "finish_reason": null }],
            });
            format!("data: {chunk}\n\n")
        })
        .collect();
    println!("the event stream has {} bytes", body.len());
    let server = ModelServer::start(Vec::<Step>::new());
    let client = reqwest::Client::builder().no_proxy().build()?;
    let source = Source {
        server: &server,
        client: &client,
        body: &body,
    };
    let mut failed = None;
    let mut group = criterion.benchmark_group("sse");
    group
        .sample_size(20)
        .measurement_time(Duration::from_secs(4));
    for (name, read) in [("floor", bytes as Read), ("ours", events as Read)] {
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|iterations| {
                let mut total = Duration::ZERO;
                for _ in 0..iterations {
                    match read(&source, &runtime) {
                        Ok(time) => total += time,
                        Err(error) => {
                            failed.get_or_insert(error);
                            // Criterion can't be told to stop; the figure is thrown away.
                            total += Duration::from_secs(1);
                        }
                    }
                }
                total
            });
        });
    }
    group.finish();
    failed.map_or(Ok(()), Err)
}

type Read = fn(&Source<'_>, &Runtime) -> anyhow::Result<Duration>;

struct Source<'a> {
    server: &'a ModelServer,
    client: &'a reqwest::Client,
    body: &'a str,
}

impl Source<'_> {
    fn request(&self) -> RequestBuilder {
        self.server.push(Step::fault(Fault::events(self.body)));
        self.client
            .post(format!("{}/chat/completions", self.server.url()))
            .body("{}")
    }
}

fn bytes(source: &Source<'_>, runtime: &Runtime) -> anyhow::Result<Duration> {
    let request = source.request();
    let since = Instant::now();
    let length = runtime.block_on(async {
        let mut body = request.send().await?.bytes_stream();
        let mut length = 0;
        while let Some(bytes) = body.next().await {
            length += bytes?.len();
        }
        anyhow::Ok(length)
    })?;
    let time = since.elapsed();
    ensure!(length == source.body.len(), "{length} bytes came");
    Ok(time)
}

fn events(source: &Source<'_>, runtime: &Runtime) -> anyhow::Result<Duration> {
    let request = source.request();
    let since = Instant::now();
    let count = runtime.block_on(async {
        let mut stream = open(request, SseLimits::default());
        let mut count = 0;
        while let Some(event) = stream.next().await {
            event?;
            count += 1;
        }
        anyhow::Ok(count)
    })?;
    let time = since.elapsed();
    ensure!(count == EVENTS, "{count} events came");
    Ok(time)
}
