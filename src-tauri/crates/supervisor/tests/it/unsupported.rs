//! Where supervision is not written yet, it says so.

use std::path::Path;

use holdfast_domain::recovery::process::ProcessEvidence;
use holdfast_supervisor::{boot_id, launch, look, process_start_time, stragglers};

#[test]
fn every_call_that_needs_a_process_answers_unsupported_platform() {
    let folder = tempfile::tempdir().unwrap();
    let code = "unsupported_platform";
    assert_eq!(boot_id().unwrap_err().code(), code);
    assert_eq!(process_start_time(1).unwrap_err().code(), code);
    assert_eq!(stragglers("a").unwrap_err().code(), code);
    assert_eq!(
        launch(Path::new("x"), folder.path()).unwrap_err().code(),
        code
    );
    assert_eq!(
        look(folder.path(), "a", "b", "c", true).unwrap_err().code(),
        code
    );
    let missing = folder.path().join("missing");
    assert_eq!(
        look(&missing, "a", "b", "c", true).unwrap(),
        ProcessEvidence::NoFolder
    );
}
