//! Where measurements write, and which programs they start.
//!
//! Guarantees: files lie in the build's own folder, so that syncs meet a disk and not a folder in
//! memory; the programs are those of this checkout, built like the measurement itself.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use tempfile::TempDir;

/// The programs that are measured.
#[derive(Debug, Clone)]
pub struct Programs {
    /// `holdfast`.
    pub holdfast: PathBuf,
    /// `holdfast-supervisor`.
    pub supervisor: PathBuf,
}

/// `target`: a measurement lies in `target/release/deps`.
fn target() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let target = own.ancestors().nth(3).context("not started by cargo")?;
    Ok(target.to_path_buf())
}

/// A folder of its own on the disk of the build folder; removed when it is dropped.
///
/// # Errors
/// What the system says.
pub fn scratch() -> anyhow::Result<TempDir> {
    tempfile::Builder::new()
        .prefix("bench-")
        .tempdir_in(target()?)
        .context("a folder for the measurement can't be made")
}

/// The programs, built now: release, or debug for a measurement that is built so.
///
/// # Errors
/// When they can't be built.
pub fn programs() -> anyhow::Result<Programs> {
    let release = !cfg!(debug_assertions);
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("Cargo.toml");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args(["build", "--quiet", "--manifest-path"])
        .arg(manifest)
        .args(["-p", "holdfast-cli", "-p", "holdfast-supervisor"])
        .args(release.then_some("--release"))
        .status()
        .context("cargo can't be started")?;
    ensure!(built.success(), "the programs could not be built ({built})");
    let folder = target()?.join(if release { "release" } else { "debug" });
    let program = |name: &str| folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    Ok(Programs {
        holdfast: program("holdfast"),
        supervisor: program("holdfast-supervisor"),
    })
}
