//! The outside ledger, with a real shell.

#![cfg(unix)]

use holdfast_testkit::Ledger;

#[test]
fn a_ledger_counts_the_effects_of_a_shell() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::at(folder.path().join("it's a ledger"));
    assert_eq!(ledger.lines(), Vec::<String>::new());
    for line in ["one", "it's \"two\" $HOME", "one"] {
        let status = std::process::Command::new("sh")
            .args(["-c", &ledger.append(line)])
            .status()
            .unwrap();
        assert!(status.success());
    }
    assert_eq!(ledger.lines(), ["one", "it's \"two\" $HOME", "one"]);
    assert_eq!(ledger.count("one"), 2);
    assert_eq!(ledger.count("two"), 0);
}
