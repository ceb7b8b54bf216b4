//! `holdfast doctor`.

use std::io::Write;
use std::path::PathBuf;

use holdfast_controller::host::Check;

use crate::data;

pub(crate) fn doctor(folder: Option<PathBuf>, json: bool) -> anyhow::Result<u8> {
    let host = data::host(data::folder(folder)?, None)?;
    let findings = host.diagnose();
    let mut out = std::io::stdout();
    if json {
        writeln!(out, "{}", serde_json::to_string(&findings)?)?;
    } else {
        for finding in &findings {
            let word = match finding.check {
                Check::Ok => "ok     ",
                Check::Warning => "warning",
                Check::Failed => "FAILED ",
            };
            writeln!(out, "{word} {}: {}", finding.name, finding.message)?;
        }
    }
    let failed = findings
        .iter()
        .any(|finding| finding.check == Check::Failed);
    Ok(u8::from(failed))
}
