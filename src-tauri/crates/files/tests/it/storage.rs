//! What the disk does with the operations of the log.

use std::io::ErrorKind;

use holdfast_files::{Disk, Storage};

#[test]
fn a_new_file_is_never_an_existing_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let mut file = Disk.create_new(&path).unwrap();
    assert_eq!(file.append(b"one").unwrap(), 3);
    let refused = Disk.create_new(&path).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::AlreadyExists);
    assert_eq!(std::fs::read(&path).unwrap(), b"one");
}

#[test]
fn appends_go_to_the_end_also_after_a_cut_and_a_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let mut file = Disk.create_new(&path).unwrap();
    file.append(b"one two").unwrap();
    file.sync().unwrap();
    file.set_length(4).unwrap();
    let mut read = [0; 3];
    assert_eq!(file.read_at(0, &mut read).unwrap(), 3);
    assert_eq!(&read, b"one");
    file.append(b"three").unwrap();
    drop(file);
    let mut file = Disk.open(&path).unwrap();
    file.append(b"!").unwrap();
    file.sync().unwrap();
    assert_eq!(file.length().unwrap(), 10);
    assert_eq!(file.read_at(10, &mut read).unwrap(), 0);
    assert_eq!(std::fs::read(&path).unwrap(), b"one three!");
}

#[test]
fn a_file_opened_for_reading_can_not_be_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    Disk.create_new(&path).unwrap().append(b"one").unwrap();
    let mut file = Disk.open_read(&path).unwrap();
    assert!(file.append(b"two").is_err());
    assert_eq!(std::fs::read(&path).unwrap(), b"one");
}

#[test]
fn files_are_renamed_and_removed_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("a"), folder.path().join("b"));
    Disk.create_new(&from).unwrap().append(b"a").unwrap();
    Disk.create_new(&to).unwrap().append(b"b").unwrap();
    Disk.rename(&from, &to).unwrap();
    Disk.sync_folder(folder.path()).unwrap();
    assert_eq!(std::fs::read(&to).unwrap(), b"a");
    assert_eq!(Disk.open(&from).unwrap_err().kind(), ErrorKind::NotFound);
    Disk.remove(&to).unwrap();
    assert_eq!(Disk.remove(&to).unwrap_err().kind(), ErrorKind::NotFound);
}

#[cfg(unix)]
#[test]
fn what_it_creates_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let base = tempfile::tempdir().unwrap();
    let folder = base.path().join("a/b");
    Disk.create_folder(&folder).unwrap();
    let path = folder.join("log");
    Disk.create_new(&path).unwrap();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(&folder) & 0o777, 0o700);
    assert_eq!(mode(&base.path().join("a")) & 0o777, 0o700);
    assert_eq!(mode(&path) & 0o777, 0o600);
}
