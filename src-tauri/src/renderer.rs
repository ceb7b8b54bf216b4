//! How the web view draws. On Linux some graphics drivers show a blank window when WebKit passes
//! its buffers as dma-buf; drawing without costs little, so it is off unless someone wants it.
//!
//! Guarantee: a variable that is set is left alone, and `HOLDFAST_KEEP_DMABUF=1` changes nothing.

use std::ffi::OsStr;

/// WebKit's own switch.
const SWITCH: &str = "WEBKIT_DISABLE_DMABUF_RENDERER";

/// The opt-out.
const KEEP: &str = "HOLDFAST_KEEP_DMABUF";

/// Whether the switch has to be set, from the values of the two variables.
fn must_switch(switch: Option<&OsStr>, keep: Option<&OsStr>) -> bool {
    switch.is_none() && keep.is_none_or(|value| value != "1")
}

/// Starts the program anew with the switch, in the same process; comes back when that is not
/// needed or not possible. A running program can't change its environment safely.
#[cfg(target_os = "linux")]
pub(crate) fn settle() {
    use std::os::unix::process::CommandExt;

    let value = std::env::var_os;
    if !must_switch(value(SWITCH).as_deref(), value(KEEP).as_deref()) {
        return;
    }
    if let Ok(program) = std::env::current_exe() {
        let error = std::process::Command::new(program)
            .args(std::env::args_os().skip(1))
            .env(SWITCH, "1")
            .exec();
        tracing::warn!(kind = ?error.kind(), "drawing without dma-buf could not be switched on");
    }
}

/// Other systems draw by other means.
#[cfg(not(target_os = "linux"))]
pub(crate) fn settle() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_is_set_only_when_nobody_chose() {
        let cases = [
            (None, None, true),
            (None, Some("0"), true),
            (None, Some("1"), false),
            (Some("0"), None, false),
            (Some("1"), None, false),
        ];
        for (switch, keep, expected) in cases {
            let found = must_switch(switch.map(OsStr::new), keep.map(OsStr::new));
            assert_eq!(found, expected, "{switch:?} {keep:?}");
        }
    }
}
