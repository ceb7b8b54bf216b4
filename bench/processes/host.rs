//! How the measured host is started.

use std::path::Path;

use holdfast_bench::place::Programs;
use holdfast_testkit::HostOptions;

/// `holdfast serve` of the measured build, with the supervisor of the same build.
pub(crate) fn options(programs: &Programs, data: &Path, workspace: &Path) -> HostOptions {
    let mut options = HostOptions::serve(data, workspace);
    options.binary.clone_from(&programs.holdfast);
    options.env(
        "HOLDFAST_SUPERVISOR",
        &programs.supervisor.to_string_lossy(),
    )
}
