//! The lock between handles of one process; between processes: the journal's tests.

use holdfast_files::{FileLock, LockError};

#[test]
fn a_held_lock_is_refused_and_free_again_after_it_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lock");
    let lock = FileLock::acquire(&path).unwrap();
    let refused = FileLock::acquire(&path).unwrap_err();
    assert_eq!(refused.code(), "lock_held");
    drop(lock);
    assert!(path.exists(), "the lock file is never deleted");
    FileLock::acquire(&path).unwrap();
}

#[test]
fn a_missing_folder_is_an_error_of_the_system() {
    let folder = tempfile::tempdir().unwrap();
    let refused = FileLock::acquire(&folder.path().join("none/lock")).unwrap_err();
    assert!(matches!(refused, LockError::Io(_)));
    assert_eq!(refused.code(), "lock_failed");
}
