//! The layer that fails on purpose does exactly what a plan says, and nothing else.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

use holdfast_files::fault::{Fault, Operation, Plan};
use holdfast_files::{Disk, Faulty, Storage, StoredFile};

struct Place {
    _folder: tempfile::TempDir,
    path: PathBuf,
    storage: Faulty,
    file: Box<dyn StoredFile>,
}

/// A file that holds `one`, durable.
fn place() -> Place {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let storage = Faulty::new(Arc::new(Disk));
    let mut file = storage.create_new(&path).unwrap();
    file.append(b"one").unwrap();
    file.sync().unwrap();
    storage.sync_folder(folder.path()).unwrap();
    Place {
        _folder: folder,
        path,
        storage,
        file,
    }
}

fn plan(fault: Fault, only: Operation, first: u64, last: u64) -> Plan {
    Plan {
        fault,
        first,
        last,
        only: Some(only),
    }
}

#[test]
fn operations_are_counted_by_kind() {
    let place = place();
    assert_eq!(place.storage.operations(), 4);
    assert_eq!(place.storage.count(Operation::Append), 1);
    assert_eq!(place.storage.count(Operation::Sync), 1);
    assert_eq!(place.storage.count(Operation::SyncFolder), 1);
    assert_eq!(place.storage.count(Operation::Rename), 0);
}

#[test]
fn only_the_chosen_operation_fails() {
    let mut place = place();
    let full = Fault::Fail(ErrorKind::StorageFull);
    place.storage.inject(plan(full, Operation::Append, 2, 2));
    place.file.append(b"a").unwrap();
    let error = place.file.append(b"b").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    place.file.append(b"c").unwrap();
    assert_eq!(place.storage.hits(), 1);
    assert_eq!(std::fs::read(&place.path).unwrap(), b"oneac");
}

#[test]
fn a_plan_without_end_fails_until_it_is_healed() {
    let mut place = place();
    let full = Fault::Fail(ErrorKind::StorageFull);
    place.storage.inject(Plan {
        fault: full,
        first: 1,
        last: u64::MAX,
        only: None,
    });
    assert!(place.file.append(b"a").is_err());
    assert!(place.file.sync().is_err());
    assert!(place.storage.open(&place.path).is_err());
    place.storage.heal();
    place.file.append(b"b").unwrap();
    assert_eq!(std::fs::read(&place.path).unwrap(), b"oneb");
}

#[test]
fn short_and_torn_appends_write_half() {
    let mut place = place();
    place
        .storage
        .inject(plan(Fault::Short, Operation::Append, 1, 1));
    assert_eq!(place.file.append(b"abcd").unwrap(), 2);
    place
        .storage
        .inject(plan(Fault::Torn, Operation::Append, 1, 1));
    assert!(place.file.append(b"efgh").is_err());
    assert_eq!(std::fs::read(&place.path).unwrap(), b"oneabef");
}

#[test]
fn a_dropped_append_pretends() {
    let mut place = place();
    place
        .storage
        .inject(plan(Fault::Drop, Operation::Append, 1, 1));
    assert_eq!(place.file.append(b"abcd").unwrap(), 4);
    assert_eq!(std::fs::read(&place.path).unwrap(), b"one");
}

#[test]
fn a_losing_sync_leaves_zeros() {
    let mut place = place();
    place
        .storage
        .inject(plan(Fault::Lose, Operation::Sync, 1, 1));
    place.file.append(b"two").unwrap();
    assert!(place.file.sync().is_err());
    place.file.sync().unwrap();
    assert_eq!(std::fs::read(&place.path).unwrap(), b"one\0\0\0");
}

#[test]
fn a_power_loss_takes_what_was_not_synced() {
    let mut place = place();
    place
        .storage
        .inject(plan(Fault::Drop, Operation::Sync, 1, 1));
    place.file.append(b"two").unwrap();
    place.file.sync().unwrap();
    let other = place.path.with_file_name("other");
    place.storage.create_new(&other).unwrap().sync().unwrap();
    drop(place.file);
    place.storage.power_loss().unwrap();
    assert_eq!(std::fs::read(&place.path).unwrap(), b"one");
    assert!(!other.exists(), "its folder was not synced");
}
