//! The scripted model server as a program, for tests in other languages.
//!
//! `holdfast-model-server --script FILE.json [--addr 127.0.0.1:0]` prints one JSON line
//! `{"url","pid"}` and serves until it is killed or its standard input ends.

use std::io::{Read, Write};

use anyhow::{Context, bail};
use holdfast_testkit::{ModelServer, Script};

fn main() -> anyhow::Result<()> {
    let mut script = Script::default();
    let mut address = "127.0.0.1:0".to_owned();
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments
            .next()
            .with_context(|| format!("{name} wants a value"))?;
        match name.as_str() {
            "--script" => {
                let text = std::fs::read_to_string(&value)
                    .with_context(|| format!("the script {value} can't be read"))?;
                script = serde_json::from_str(&text)
                    .with_context(|| format!("the script {value} is not valid"))?;
            }
            "--addr" => address = value,
            _ => bail!("unknown argument {name}; known are --script FILE and --addr ADDRESS"),
        }
    }
    let server = ModelServer::start_on(&address, script);
    let ready = serde_json::json!({ "url": server.url(), "pid": std::process::id() });
    let mut out = std::io::stdout().lock();
    writeln!(out, "{ready}")?;
    out.flush()?;
    // The parent's end of this pipe closes with the parent, so no server is left behind.
    let mut rest = Vec::new();
    std::io::stdin().lock().read_to_end(&mut rest)?;
    Ok(())
}
