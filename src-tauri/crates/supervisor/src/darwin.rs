//! The calls to macOS that neither the standard library nor `rustix` makes. The one place with
//! unsafe code on macOS: thin wrappers over sysctl(3) and libproc which bound their buffers.
//!
//! Guarantees: no pointer is kept by a call after it returned; a length that comes back is checked
//! before it is believed.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_int, c_void};
use std::io;
use std::mem::{size_of, zeroed};
use std::ptr::null_mut;

/// Process ids that are listed at most.
const LISTED: usize = 1 << 16;
/// Bytes of a process's arguments and environment that are read: as many as it can have.
const TEXT: usize = 1 << 20;

/// A process as the kernel tells of it.
pub(crate) struct Process {
    /// Microseconds since 1970.
    pub(crate) started_us: u64,
    /// It has ended and waits to be reaped.
    pub(crate) has_ended: bool,
    pub(crate) name: String,
}

/// Asks for one process; `None` when there is none, or it may not be asked for.
pub(crate) fn process(pid: u32) -> Option<Process> {
    let pid = c_int::try_from(pid).ok()?;
    let size = c_int::try_from(size_of::<libc::proc_bsdinfo>()).ok()?;
    // SAFETY: plain data, for which zeros are a value.
    let mut found: libc::proc_bsdinfo = unsafe { zeroed() };
    // SAFETY: the pointer and the length are those of one such structure.
    let filled = unsafe {
        libc::proc_pidinfo(
            pid,
            libc::PROC_PIDTBSDINFO,
            0,
            (&raw mut found).cast::<c_void>(),
            size,
        )
    };
    if filled != size {
        return None;
    }
    let name: Vec<u8> = found
        .pbi_name
        .iter()
        .map(|unit| unit.to_ne_bytes()[0])
        .take_while(|byte| *byte != 0)
        .collect();
    Some(Process {
        started_us: found
            .pbi_start_tvsec
            .saturating_mul(1_000_000)
            .saturating_add(found.pbi_start_tvusec),
        has_ended: found.pbi_status == libc::SZOMB,
        name: String::from_utf8_lossy(&name).into_owned(),
    })
}

/// The path of a process's program.
pub(crate) fn program(pid: u32) -> Option<String> {
    let pid = c_int::try_from(pid).ok()?;
    let mut buffer = [0_u8; 4096];
    // SAFETY: the pointer and the length are the buffer's.
    let length = unsafe { libc::proc_pidpath(pid, buffer.as_mut_ptr().cast::<c_void>(), 4096) };
    let path = buffer.get(..usize::try_from(length).ok()?)?;
    (!path.is_empty()).then(|| String::from_utf8_lossy(path).into_owned())
}

/// The processes of a group, the ended and unreaped included.
pub(crate) fn group(leader: u32) -> Vec<u32> {
    let Ok(leader) = c_int::try_from(leader) else {
        return Vec::new();
    };
    list(|buffer, size| {
        // SAFETY: the pointer and the length are the list's.
        unsafe { libc::proc_listpgrppids(leader, buffer, size) }
    })
}

/// All processes.
pub(crate) fn all_processes() -> Vec<u32> {
    list(|buffer, size| {
        // SAFETY: the pointer and the length are the list's.
        unsafe { libc::proc_listallpids(buffer, size) }
    })
}

fn list(ask: impl FnOnce(*mut c_void, c_int) -> c_int) -> Vec<u32> {
    let mut pids = vec![0_u32; LISTED];
    let Ok(size) = c_int::try_from(LISTED * size_of::<u32>()) else {
        return Vec::new();
    };
    ask(pids.as_mut_ptr().cast::<c_void>(), size);
    // Versions of the system differ in what they answer, a number of bytes or of processes; what
    // was not filled stays zero.
    pids.retain(|pid| *pid != 0);
    pids
}

/// What the kernel keeps of a process's arguments and environment; `None` for other users'.
pub(crate) fn arguments_and_environment(pid: u32) -> Option<Vec<u8>> {
    let pid = c_int::try_from(pid).ok()?;
    let mut name = [libc::CTL_KERN, libc::KERN_PROCARGS2, pid];
    let mut text = vec![0_u8; TEXT];
    let mut length = text.len();
    // SAFETY: name and length of the name agree; `length` is the buffer's; nothing is set.
    let told = unsafe {
        libc::sysctl(
            name.as_mut_ptr(),
            3,
            text.as_mut_ptr().cast::<c_void>(),
            &mut length,
            null_mut(),
            0,
        )
    };
    if told != 0 {
        return None;
    }
    text.truncate(length);
    Some(text)
}

/// The id of this boot.
pub(crate) fn boot_session() -> io::Result<String> {
    let mut buffer = [0_u8; 64];
    let mut length = buffer.len();
    // SAFETY: the name ends with a zero; `length` is the buffer's; nothing is set.
    let told = unsafe {
        libc::sysctlbyname(
            c"kern.bootsessionuuid".as_ptr(),
            buffer.as_mut_ptr().cast::<c_void>(),
            &mut length,
            null_mut(),
            0,
        )
    };
    if told != 0 {
        return Err(io::Error::last_os_error());
    }
    let id = CStr::from_bytes_until_nul(&buffer)
        .map_err(io::Error::other)?
        .to_string_lossy()
        .into_owned();
    if id.is_empty() {
        return Err(io::Error::other("the system gives it no id"));
    }
    Ok(id)
}

/// Closes every descriptor from 3 on. For the first moments of the process only, before it has
/// opened anything itself.
pub(crate) fn close_inherited() -> io::Result<()> {
    // The listing's own descriptor is closed by then: the list is read whole.
    let open: Vec<c_int> = std::fs::read_dir("/dev/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    for descriptor in open.into_iter().filter(|descriptor| *descriptor > 2) {
        // SAFETY: the process has just begun and owns no descriptor above 2; those that it
        // inherited are owned by nobody in this program. Closing a closed one only fails.
        unsafe { libc::close(descriptor) };
    }
    Ok(())
}
