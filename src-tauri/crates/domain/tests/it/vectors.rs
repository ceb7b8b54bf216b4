//! The shared vectors, and how often generated cases run.

use serde::de::DeserializeOwned;

/// Reads `tests/vectors/<name>.json` of the workspace.
pub(crate) fn read<T: DeserializeOwned>(name: &str) -> T {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../tests/vectors")
        .join(format!("{name}.json"));
    let text = std::fs::read_to_string(&path).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Generated cases: `count`, scaled by `HOLDFAST_TEST_SCALE`.
pub(crate) fn cases(count: u32) -> proptest::test_runner::Config {
    let scale: f64 = std::env::var("HOLDFAST_TEST_SCALE")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1.0);
    proptest::test_runner::Config {
        cases: ((f64::from(count) * scale) as u32).max(1),
        failure_persistence: None,
        ..proptest::test_runner::Config::default()
    }
}
