//! The program is replaced while a command of it runs (SV-08, C40).

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::commands::{gated, only_attempt, open};
use super::stage::{Stage, calls, serve, shell, text, until_there};

fn executable(path: &Path, content: &[u8]) {
    // A running program can't be written to; an update puts another file in its place.
    let draft = path.with_extension("new");
    std::fs::write(&draft, content).unwrap();
    std::fs::set_permissions(&draft, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::rename(draft, path).unwrap();
}

fn program_of(pid: u32) -> PathBuf {
    std::fs::read_link(format!("/proc/{pid}/exe")).unwrap()
}

#[tokio::test]
async fn c40_an_update_of_the_program_does_not_touch_a_running_command() {
    let mut content = Vec::new();
    let mut stage = Stage::prepared("full", "", vec![], |root| {
        let options = serve(root);
        content = std::fs::read(&options.env["HOLDFAST_SUPERVISOR"]).unwrap();
        let original = root.join("holdfast-supervisor");
        executable(&original, &content);
        options.env("HOLDFAST_SUPERVISOR", &original.to_string_lossy())
    })
    .await;
    let original = stage.beside("holdfast-supervisor");
    let copies = stage.data().canonicalize().unwrap().join("bin");
    let command = gated(&stage);
    stage.model.push(calls([shell("c1", &command)]));
    stage.submit("do it").await;
    until_there(&stage.beside("began")).await;
    let supervisor = stage.supervisor_of(&only_attempt(&stage));
    assert!(program_of(supervisor).starts_with(&copies));

    // Gone, then another version in its place, and another host.
    std::fs::remove_file(&original).unwrap();
    open(stage.beside("effect-gate"));
    until_there(&stage.beside("happened")).await;
    stage.kill();
    content.extend_from_slice(b"a newer version");
    executable(&original, &content);
    stage.restart();
    assert_eq!(stage.tool("c1").await["state"], "in_flight");
    assert!(program_of(supervisor).exists());
    open(stage.beside("end-gate"));
    let tool = stage.until_tool("c1", "failed").await;
    assert_eq!(tool["resultSource"], "recovered");
    assert_eq!(tool["exitCode"], 7);
    assert!(text(&tool["output"]).starts_with("begun\neffect\nended\n"));
    assert_eq!(stage.ledger.lines(), ["effect"]);

    // The next command is the newer version's.
    stage
        .model
        .push(calls([shell("c2", "readlink /proc/$PPID/exe")]));
    stage.turn("who are you?").await;
    let tool = stage.tool("c2").await;
    let newer = PathBuf::from(text(&tool["output"]).lines().next().unwrap());
    assert!(newer.starts_with(&copies), "{tool}");
    assert_eq!(std::fs::read(newer).unwrap(), content);
    assert_eq!(std::fs::read_dir(copies).unwrap().count(), 2);
}
