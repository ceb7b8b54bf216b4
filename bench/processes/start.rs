//! From a host's spawn to its ready line, and its first answers, with 2,000 sessions on disk. Floors:
//! the same with no session; the program alone, saying its version; an empty process.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::ensure;
use holdfast_bench::place::Programs;
use holdfast_bench::samples::Samples;
use holdfast_bench::table::{Table, both, time};
use holdfast_testkit::Host;
use tokio::runtime::Runtime;

use crate::stored::{SESSIONS, Stored, check_list};

const ROUNDS: usize = 25;
const AIM: Duration = Duration::from_millis(100);

/// What one start took.
#[derive(Default)]
struct Starts {
    ready: Samples,
    health: Samples,
    list: Samples,
    second_list: Samples,
}

pub(crate) fn measure(
    programs: &Programs,
    stored: &Stored,
    table: &mut Table,
) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (mut full, mut empty) = (Starts::default(), Starts::default());
    let (mut version, mut nothing) = (Samples::default(), Samples::default());
    for _ in 0..ROUNDS {
        empty.one(programs, stored, &stored.empty(), &runtime)?;
        full.one(programs, stored, &stored.full(), &runtime)?;
        version.push(run(&programs.holdfast, &["--version"])?);
        nothing.push(run(Path::new("/bin/true"), &[])?);
    }
    let floors = format!(
        "{} without sessions, {} for --version, {} for `true`",
        time(empty.ready.median()),
        time(version.median()),
        time(nothing.median())
    );
    table.aimed(
        &format!("start to ready, {SESSIONS} sessions on disk"),
        both(&full.ready),
        floors,
        "median under 100 ms",
        full.ready.median() < AIM,
    );
    for (what, full, empty) in [
        ("first GET /healthz after it", &full.health, &empty.health),
        ("first GET /sessions after it", &full.list, &empty.list),
        (
            "second GET /sessions",
            &full.second_list,
            &empty.second_list,
        ),
    ] {
        table.row(
            what,
            time(full.median()),
            format!("{} without sessions", time(empty.median())),
        );
    }
    Ok(())
}

impl Starts {
    fn one(
        &mut self,
        programs: &Programs,
        stored: &Stored,
        data: &Path,
        runtime: &Runtime,
    ) -> anyhow::Result<()> {
        let options = stored.host(programs, data);
        let since = Instant::now();
        let mut host = Host::start(options)?;
        self.ready.push(since.elapsed());
        let client = host.client();
        let ask = |path: &'static str| {
            let since = Instant::now();
            let answer = runtime.block_on(client.get_ok(path));
            (since.elapsed(), answer)
        };
        let (took, _) = ask("/healthz");
        self.health.push(took);
        let (took, first) = ask("/sessions");
        self.list.push(took);
        let (took, second) = ask("/sessions");
        self.second_list.push(took);
        ensure!(first == second, "two lists differ");
        if data == stored.full() {
            check_list(&first)?;
        }
        host.term()?;
        Ok(())
    }
}

fn run(program: &Path, arguments: &[&str]) -> anyhow::Result<Duration> {
    let since = Instant::now();
    let status = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()?;
    let took = since.elapsed();
    ensure!(
        status.success(),
        "{} ended with {status}",
        program.display()
    );
    Ok(took)
}
