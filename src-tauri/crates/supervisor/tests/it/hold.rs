//! The host's hold on a command: prompt by the socket, true without it (SV-07).

use std::fs;
use std::os::unix::fs::PermissionsExt;

use holdfast_supervisor::{
    Attachment, Progress, find_binary, install_binary, launch, private_runtime_folder,
};

use crate::stage::{Stage, binary, ended, next, until};

const TALK: &str = "echo one; until [ -e gate ]; do sleep 0.02; done; echo two";

#[tokio::test]
async fn sv_07_a_reattachment_begins_where_the_last_one_ended() {
    let stage = Stage::new();
    let request = stage.request(TALK);
    let mut first = stage.start(&request);
    assert_eq!(next(&mut first).await, Progress::Output(b"one\n".to_vec()));
    let offset = first.offset();
    drop(first);
    fs::write(stage.work("gate"), "").unwrap();
    let mut second = Attachment::attach(stage.target(&request), None, offset);
    let (output, receipt) = ended(&mut second).await;
    assert_eq!((output.as_str(), receipt.output_length), ("two\n", 8));
    assert_eq!(next(&mut second).await, Progress::Gone);
    assert_eq!(next(&mut second).await, Progress::Gone);
    // Long after the end the same is told again.
    let mut third = Attachment::attach(stage.target(&request), None, 0);
    assert_eq!(ended(&mut third).await, ("one\ntwo\n".to_owned(), receipt));
}

#[tokio::test]
async fn sv_07_a_newer_attachment_replaces_the_older_and_both_learn_the_end() {
    let stage = Stage::new();
    let request = stage.request(TALK);
    let mut older = stage.start(&request);
    assert_eq!(next(&mut older).await, Progress::Output(b"one\n".to_vec()));
    let mut newer = Attachment::attach(stage.target(&request), None, 0);
    assert_eq!(next(&mut newer).await, Progress::Output(b"one\n".to_vec()));
    fs::write(stage.work("gate"), "").unwrap();
    let (from_older, from_newer) = tokio::join!(ended(&mut older), ended(&mut newer));
    assert_eq!(from_older, from_newer);
    assert_eq!(from_newer.0, "two\n");
}

#[tokio::test]
async fn sv_07_the_loss_of_the_socket_changes_nothing() {
    let stage = Stage::new();
    let request = stage.request(TALK);
    let mut attachment = stage.start(&request);
    let socket = stage.path().join("run").join(&request.attempt_id[..16]);
    until("the socket is there", || socket.exists().then_some(()));
    fs::remove_file(&socket).unwrap();
    assert_eq!(
        next(&mut attachment).await,
        Progress::Output(b"one\n".to_vec())
    );
    fs::write(stage.work("gate"), "").unwrap();
    let (output, receipt) = ended(&mut attachment).await;
    assert_eq!((output.as_str(), receipt.code), ("two\n", Some(0)));
}

#[tokio::test]
async fn sv_07_an_open_runtime_folder_gets_no_socket_and_the_command_runs() {
    let stage = Stage::new();
    let request = stage.request(TALK);
    let run = stage.path().join("run");
    fs::set_permissions(&run, fs::Permissions::from_mode(0o755)).unwrap();
    let mut attachment = stage.start(&request);
    assert_eq!(
        next(&mut attachment).await,
        Progress::Output(b"one\n".to_vec())
    );
    assert_eq!(fs::read_dir(&run).unwrap().count(), 0);
    fs::write(stage.work("gate"), "").unwrap();
    assert_eq!(ended(&mut attachment).await.0, "two\n");
}

#[tokio::test]
async fn sv_07_the_socket_goes_with_the_supervisor() {
    let stage = Stage::new();
    let request = stage.request("true");
    stage.run(&request).await;
    until("the runtime folder is empty", || {
        (fs::read_dir(stage.path().join("run")).unwrap().count() == 0).then_some(())
    });
}

#[tokio::test]
async fn next_may_be_dropped_and_called_again() {
    let stage = Stage::new();
    let request = stage.request("for i in 1 2 3 4 5 6 7 8 9; do echo $i; sleep 0.01; done");
    let mut attachment = stage.start(&request);
    let mut output = Vec::new();
    let receipt = loop {
        let progress = tokio::select! {
            biased;
            progress = attachment.next() => progress.unwrap(),
            () = tokio::task::yield_now() => continue,
        };
        match progress {
            Progress::Output(more) => output.extend(more),
            Progress::Exited(receipt) => break receipt,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(output, b"1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    assert_eq!(receipt.output_length, 18);
}

#[test]
fn the_executable_is_found_from_a_test() {
    let found = find_binary().unwrap();
    assert!(found.is_file() && found.ends_with("holdfast-supervisor"));
}

#[test]
fn sv_07_the_runtime_folder_is_short_and_private() {
    let folder = private_runtime_folder().unwrap();
    let mode = fs::metadata(&folder).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0);
    assert!(folder.as_os_str().len() + 17 <= 60);
}

#[tokio::test]
async fn sv_08_the_installed_executable_is_its_own_copy() {
    let stage = Stage::new();
    let data = stage.path().join("data");
    let original = stage.path().join("original");
    fs::copy(binary(), &original).unwrap();
    let installed = install_binary(&original, &data).unwrap();
    assert_eq!(install_binary(&original, &data).unwrap(), installed);
    assert_eq!(
        fs::read_dir(installed.parent().unwrap()).unwrap().count(),
        1
    );
    assert_eq!(fs::read(&installed).unwrap(), fs::read(binary()).unwrap());
    // An update replaces the original while a command runs from the copy.
    let request = stage.request(TALK);
    let folder = stage.prepare(&request);
    let child = launch(&installed, &folder).unwrap();
    let mut attachment = Attachment::attach(stage.target(&request), Some(child), 0);
    fs::write(&original, "another version").unwrap();
    let newer = install_binary(&original, &data).unwrap();
    assert_ne!(newer, installed);
    fs::write(stage.work("gate"), "").unwrap();
    assert_eq!(ended(&mut attachment).await.0, "one\ntwo\n");
}
