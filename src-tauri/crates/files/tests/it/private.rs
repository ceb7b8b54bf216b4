//! Private files are replaced whole, and read within a bound.

use holdfast_files::{read_bounded, write_private};

#[test]
fn a_private_file_is_replaced_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    write_private(&path, b"one").unwrap();
    write_private(&path, b"two").unwrap();
    assert_eq!(read_bounded(&path, 3).unwrap(), b"two");
    let names = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(names, 1, "no temporary file is left");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn a_file_above_the_bound_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large");
    write_private(&path, b"1234").unwrap();
    let refused = read_bounded(&path, 3).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::FileTooLarge);
}
