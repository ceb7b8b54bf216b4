//! Closing what was inherited. The crate's one place with unsafe code.
//!
//! Guarantee: after `close_inherited` no descriptor above the standard streams is open.
#![allow(unsafe_code)]

use std::io;

/// Closes every descriptor from 3 on. For the first moments of the process only, before it has
/// opened anything itself.
pub(super) fn close_inherited() -> io::Result<()> {
    // SAFETY: the process has just begun and owns no descriptor above 2; those that it inherited
    // are owned by nobody in this program. The call takes three integers and touches no memory.
    let result = unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, 0_u32) };
    if result == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    if error.raw_os_error() != Some(libc::ENOSYS) {
        return Err(error);
    }
    // Before Linux 5.9. The listing's own descriptor is closed by then: the list is read whole.
    let open: Vec<i32> = std::fs::read_dir("/proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    for descriptor in open.into_iter().filter(|descriptor| *descriptor > 2) {
        // SAFETY: as above; closing a number that is closed already only fails.
        unsafe { libc::close(descriptor) };
    }
    Ok(())
}
