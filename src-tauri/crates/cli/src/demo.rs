//! `holdfast demo-project`: the sample project of the demo task.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, bail};

pub(crate) fn project(folder: &Path) -> anyhow::Result<u8> {
    if std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
        bail!(
            "{} is not empty; nothing was written; choose an empty folder",
            folder.display()
        );
    }
    for (path, content) in holdfast_controller::models::sample_project() {
        let file = folder.join(path);
        let parent = file.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent)
            .and_then(|()| std::fs::write(&file, content))
            .with_context(|| {
                format!("{} can't be written; choose another folder", file.display())
            })?;
    }
    let mut out = std::io::stdout();
    writeln!(out, "The sample project is in {}.", folder.display())?;
    writeln!(out, "Task: {}", holdfast_controller::models::DEMO_TASK)?;
    Ok(0)
}
