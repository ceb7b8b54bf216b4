//! The calls to Windows that the standard library does not make. The one place with unsafe code on
//! Windows: everything here is a thin wrapper which owns its handles and bounds its buffers.
//!
//! Guarantees: no handle outlives its owner or is closed twice; no pointer is kept by a call after
//! it returned; what comes back is checked before it is believed.
#![allow(unsafe_code)]

use std::ffi::{OsStr, OsString, c_void};
use std::io;
use std::mem::{size_of, zeroed};
use std::os::windows::ffi::{OsStrExt, OsStringExt};
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::path::Path;
use std::ptr::{null, null_mut};
use std::time::Duration;

use windows_sys::Wdk::System::SystemInformation::{
    NtQuerySystemInformation, SystemTimeOfDayInformation,
};
use windows_sys::Win32::Foundation::{
    FILETIME, HANDLE, HANDLE_FLAG_INHERIT, SetHandleInformation, WAIT_OBJECT_0,
};
use windows_sys::Win32::System::Console::{
    CTRL_BREAK_EVENT, CTRL_C_EVENT, GenerateConsoleCtrlEvent, SetConsoleCtrlHandler,
};
use windows_sys::Win32::System::JobObjects::{
    AssignProcessToJobObject, CreateJobObjectW, IsProcessInJob, JOB_OBJECT_LIMIT_BREAKAWAY_OK,
    JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE, JOB_OBJECT_LIMIT_SILENT_BREAKAWAY_OK,
    JOBOBJECT_BASIC_ACCOUNTING_INFORMATION, JOBOBJECT_EXTENDED_LIMIT_INFORMATION,
    JobObjectBasicAccountingInformation, JobObjectBasicProcessIdList,
    JobObjectExtendedLimitInformation, QueryInformationJobObject, SetInformationJobObject,
    TerminateJobObject,
};
use windows_sys::Win32::System::Threading::{
    CREATE_UNICODE_ENVIRONMENT, CreateProcessW, DeleteProcThreadAttributeList,
    EXTENDED_STARTUPINFO_PRESENT, GetCurrentProcess, GetExitCodeProcess, GetProcessTimes, INFINITE,
    InitializeProcThreadAttributeList, OpenProcess, PROC_THREAD_ATTRIBUTE_HANDLE_LIST,
    PROCESS_INFORMATION, PROCESS_QUERY_LIMITED_INFORMATION, PROCESS_SYNCHRONIZE,
    QueryFullProcessImageNameW, ResumeThread, STARTF_USESTDHANDLES, STARTUPINFOEXW,
    TerminateProcess, UpdateProcThreadAttribute, WaitForSingleObject,
};
use windows_sys::Win32::System::WindowsProgramming::QueryUnbiasedInterruptTime;

pub(crate) use windows_sys::Win32::System::Threading::{
    CREATE_BREAKAWAY_FROM_JOB, CREATE_NEW_PROCESS_GROUP, CREATE_NO_WINDOW, CREATE_SUSPENDED,
};

/// Processes that are listed of a job at most.
const LISTED: usize = 4096;

/// A process by its handle: it can't be mistaken for another, however often its id is used again.
#[derive(Debug)]
pub(crate) struct Process {
    handle: OwnedHandle,
    pid: u32,
}

impl Process {
    /// Opens a process for waiting and asking; `None` when it is not there or is another user's.
    pub(crate) fn open(pid: u32) -> Option<Self> {
        let rights = PROCESS_SYNCHRONIZE | PROCESS_QUERY_LIMITED_INFORMATION;
        // SAFETY: three integers; the handle that comes back is owned by nobody else.
        let handle = unsafe { owned(OpenProcess(rights, 0, pid)) }.ok()?;
        Some(Self { handle, pid })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// When it was created, in 100 ns since 1601.
    pub(crate) fn created_at(&self) -> Option<u64> {
        // SAFETY: FILETIME is plain data, for which zeros are a value.
        let [mut created, mut ended, mut kernel, mut user]: [FILETIME; 4] = unsafe { zeroed() };
        // SAFETY: the handle is open and the four places are writable.
        let told = unsafe {
            GetProcessTimes(self.raw(), &mut created, &mut ended, &mut kernel, &mut user)
        };
        (told != 0)
            .then(|| u64::from(created.dwHighDateTime) << 32 | u64::from(created.dwLowDateTime))
    }

    /// Its exit code, once it has ended.
    pub(crate) fn exit_code(&self) -> Option<u32> {
        if !self.has_ended() {
            return None;
        }
        let mut code = 0;
        // SAFETY: the handle is open and the place is writable.
        (unsafe { GetExitCodeProcess(self.raw(), &mut code) } != 0).then_some(code)
    }

    pub(crate) fn has_ended(&self) -> bool {
        // SAFETY: the handle is open; zero means that nothing is waited for.
        unsafe { WaitForSingleObject(self.raw(), 0) == WAIT_OBJECT_0 }
    }

    /// Waits for its end.
    pub(crate) fn wait(&self) {
        // SAFETY: the handle stays open during the call, since `self` is borrowed.
        unsafe { WaitForSingleObject(self.raw(), INFINITE) };
    }

    /// The file name of its program.
    pub(crate) fn name(&self) -> Option<String> {
        let mut buffer = [0_u16; 1024];
        let mut length = 1024;
        // SAFETY: `length` is the number of units that the buffer has.
        let told =
            unsafe { QueryFullProcessImageNameW(self.raw(), 0, buffer.as_mut_ptr(), &mut length) };
        let path = OsString::from_wide(buffer.get(..usize::try_from(length).ok()?)?);
        let name = Path::new(&path).file_name()?.to_string_lossy().into_owned();
        (told != 0).then_some(name)
    }

    /// Ends this one process.
    pub(crate) fn terminate(&self, code: u32) {
        // SAFETY: the handle is open. Without the right to it the call only fails.
        unsafe { TerminateProcess(self.raw(), code) };
    }

    /// A second handle on the same process.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            handle: self.handle.try_clone()?,
            pid: self.pid,
        })
    }

    fn raw(&self) -> HANDLE {
        self.handle.as_raw_handle()
    }
}

/// The first thread of a process that was created suspended.
#[derive(Debug)]
pub(crate) struct Thread(OwnedHandle);

impl Thread {
    /// Lets it run.
    pub(crate) fn resume(self) -> io::Result<()> {
        // SAFETY: the handle is open and has all rights, since it came from the creation.
        match unsafe { ResumeThread(self.0.as_raw_handle()) } {
            u32::MAX => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }
}

/// A job object: what is in it, and all that it starts, ends with the last handle on it.
#[derive(Debug)]
pub(crate) struct Job(OwnedHandle);

impl Job {
    /// A new one, with kill-on-close and without any leave to break away (SV-03).
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: no attributes (so that the handle is not inherited) and no name.
        let job = Self(unsafe { owned(CreateJobObjectW(null(), null())) }?);
        // SAFETY: plain data, for which zeros are a value.
        let mut limits: JOBOBJECT_EXTENDED_LIMIT_INFORMATION = unsafe { zeroed() };
        limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
        // SAFETY: the pointer and the length are those of one such structure.
        let set = unsafe {
            SetInformationJobObject(
                job.raw(),
                JobObjectExtendedLimitInformation,
                (&raw const limits).cast::<c_void>(),
                length_of::<JOBOBJECT_EXTENDED_LIMIT_INFORMATION>(),
            )
        };
        done(set).map(|()| job)
    }

    /// Puts a process into it.
    pub(crate) fn assign(&self, process: &Process) -> io::Result<()> {
        // SAFETY: both handles are open.
        done(unsafe { AssignProcessToJobObject(self.raw(), process.raw()) })
    }

    /// How many processes are in it and have not ended.
    pub(crate) fn active(&self) -> io::Result<u32> {
        // SAFETY: plain data, for which zeros are a value.
        let mut found: JOBOBJECT_BASIC_ACCOUNTING_INFORMATION = unsafe { zeroed() };
        // SAFETY: the pointer and the length are those of one such structure.
        let told = unsafe {
            QueryInformationJobObject(
                self.raw(),
                JobObjectBasicAccountingInformation,
                (&raw mut found).cast::<c_void>(),
                length_of::<JOBOBJECT_BASIC_ACCOUNTING_INFORMATION>(),
                null_mut(),
            )
        };
        done(told).map(|()| found.ActiveProcesses)
    }

    /// The ids of the processes in it, 4096 at most.
    pub(crate) fn processes(&self) -> Vec<u32> {
        /// As `JOBOBJECT_BASIC_PROCESS_ID_LIST`, with room for more than one.
        #[repr(C)]
        struct List {
            assigned: u32,
            listed: u32,
            ids: [usize; LISTED],
        }
        let mut list = Box::new(List {
            assigned: 0,
            listed: 0,
            ids: [0; LISTED],
        });
        // SAFETY: the pointer and the length are those of one such structure, which begins as the
        // documented one does. When there are more, the call fails and has filled the list.
        unsafe {
            QueryInformationJobObject(
                self.raw(),
                JobObjectBasicProcessIdList,
                (&raw mut *list).cast::<c_void>(),
                length_of::<List>(),
                null_mut(),
            );
        }
        let listed = usize::try_from(list.listed).unwrap_or(0).min(LISTED);
        list.ids[..listed]
            .iter()
            .filter_map(|id| u32::try_from(*id).ok())
            .collect()
    }

    /// Ends everything in it with this exit code.
    pub(crate) fn terminate(&self, code: u32) {
        // SAFETY: the handle is open.
        unsafe { TerminateJobObject(self.raw(), code) };
    }

    fn raw(&self) -> HANDLE {
        self.0.as_raw_handle()
    }
}

/// Whether this process is in a job, and whether a child of it may leave that job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnJob {
    /// It is in none.
    None,
    /// A child can break away, or does so unasked.
    MayLeave,
    /// A child stays in it.
    Closed,
}

/// This process's own job.
pub(crate) fn own_job() -> OwnJob {
    let mut inside = 0;
    // SAFETY: the pseudo handle of this process, no job (any is meant), a writable place.
    let told = unsafe { IsProcessInJob(GetCurrentProcess(), null_mut(), &mut inside) };
    if told != 0 && inside == 0 {
        return OwnJob::None;
    }
    // SAFETY: plain data, for which zeros are a value.
    let mut limits: JOBOBJECT_EXTENDED_LIMIT_INFORMATION = unsafe { zeroed() };
    // SAFETY: no handle means this process's job; pointer and length are of one such structure.
    let told = unsafe {
        QueryInformationJobObject(
            null_mut(),
            JobObjectExtendedLimitInformation,
            (&raw mut limits).cast::<c_void>(),
            length_of::<JOBOBJECT_EXTENDED_LIMIT_INFORMATION>(),
            null_mut(),
        )
    };
    let may = JOB_OBJECT_LIMIT_BREAKAWAY_OK | JOB_OBJECT_LIMIT_SILENT_BREAKAWAY_OK;
    if told != 0 && limits.BasicLimitInformation.LimitFlags & may != 0 {
        OwnJob::MayLeave
    } else {
        OwnJob::Closed
    }
}

/// What to create a process with.
pub(crate) struct Creation<'a> {
    /// The program's file, with its extension.
    pub(crate) program: &'a Path,
    /// The whole command line.
    pub(crate) command_line: Vec<u16>,
    /// `CREATE_…` flags.
    pub(crate) flags: u32,
    /// The whole environment.
    pub(crate) environment: &'a [(OsString, OsString)],
    /// Its working folder; `None`: this process's.
    pub(crate) folder: Option<&'a Path>,
    /// Input, and one handle for output and error; `None`: nothing at all is inherited.
    pub(crate) streams: Option<[&'a OwnedHandle; 2]>,
}

/// Creates a process that inherits the given streams and no other handle.
pub(crate) fn create(creation: Creation<'_>) -> io::Result<(Process, Thread)> {
    let program = terminated(creation.program.as_os_str())?;
    let folder = creation
        .folder
        .map(|folder| terminated(folder.as_os_str()))
        .transpose()?;
    let environment = block(creation.environment)?;
    let mut line = creation.command_line;
    line.push(0);

    // SAFETY: plain data, for which zeros are a value.
    let mut startup: STARTUPINFOEXW = unsafe { zeroed() };
    startup.StartupInfo.cb = length_of::<STARTUPINFOEXW>();
    let mut inherited: Vec<HANDLE> = Vec::new();
    if let Some([input, output]) = creation.streams {
        startup.StartupInfo.dwFlags = STARTF_USESTDHANDLES;
        startup.StartupInfo.hStdInput = input.as_raw_handle();
        startup.StartupInfo.hStdOutput = output.as_raw_handle();
        startup.StartupInfo.hStdError = output.as_raw_handle();
        inherited = vec![input.as_raw_handle(), output.as_raw_handle()];
        for handle in &inherited {
            // SAFETY: both handles are open, since `creation` borrows their owners.
            done(unsafe {
                SetHandleInformation(*handle, HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT)
            })?;
        }
    }
    // Declared before the call that uses it: the list must live until the process is there.
    let attributes = Attributes::inheriting(&inherited)?;
    startup.lpAttributeList = attributes.pointer();
    // SAFETY: PROCESS_INFORMATION is plain data; every text ends with a zero, the environment with
    // two; `line` is writable; `attributes` and `inherited` live beyond the call.
    let (created, process) = unsafe {
        let mut process: PROCESS_INFORMATION = zeroed();
        let created = CreateProcessW(
            program.as_ptr(),
            line.as_mut_ptr(),
            null(),
            null(),
            i32::from(!inherited.is_empty()),
            creation.flags | CREATE_UNICODE_ENVIRONMENT | EXTENDED_STARTUPINFO_PRESENT,
            environment.as_ptr().cast::<c_void>(),
            folder.as_ref().map_or(null(), |folder| folder.as_ptr()),
            (&raw const startup).cast(),
            &mut process,
        );
        (created, process)
    };
    done(created)?;
    // SAFETY: after a success both handles are valid and owned by nobody else.
    unsafe {
        Ok((
            Process {
                handle: owned(process.hProcess)?,
                pid: process.dwProcessId,
            },
            Thread(owned(process.hThread)?),
        ))
    }
}

/// The list of handles that a new process may inherit. Empty: there is no list.
struct Attributes(Option<Box<[usize]>>);

impl Attributes {
    /// `handles` must live as long as the list.
    fn inheriting(handles: &[HANDLE]) -> io::Result<Self> {
        if handles.is_empty() {
            return Ok(Self(None));
        }
        let mut size = 0;
        // SAFETY: without a list the call only tells how many bytes one needs.
        unsafe { InitializeProcThreadAttributeList(null_mut(), 1, 0, &mut size) };
        // In words of a pointer, so that it is aligned.
        let mut room = vec![0_usize; size.div_ceil(size_of::<usize>())].into_boxed_slice();
        let list = room.as_mut_ptr().cast::<c_void>();
        // SAFETY: the room has at least `size` bytes.
        done(unsafe { InitializeProcThreadAttributeList(list, 1, 0, &mut size) })?;
        let list_of = Self(Some(room));
        // SAFETY: the list is initialised and has room for one attribute, whose value is the slice.
        done(unsafe {
            UpdateProcThreadAttribute(
                list,
                0,
                PROC_THREAD_ATTRIBUTE_HANDLE_LIST as usize,
                handles.as_ptr().cast::<c_void>(),
                size_of::<HANDLE>() * handles.len(),
                null_mut(),
                null(),
            )
        })?;
        Ok(list_of)
    }

    fn pointer(&self) -> *mut c_void {
        self.0
            .as_ref()
            .map_or(null_mut(), |room| room.as_ptr().cast_mut().cast::<c_void>())
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        if self.0.is_some() {
            // SAFETY: the list was initialised and is not used after this.
            unsafe { DeleteProcThreadAttributeList(self.pointer()) };
        }
    }
}

/// Asks a process group on this console to end, as Ctrl+Break does.
pub(crate) fn console_break(group: u32) {
    // SAFETY: two integers. Without a console the call only fails.
    unsafe { GenerateConsoleCtrlEvent(CTRL_BREAK_EVENT, group) };
}

/// Calls a function when the console, or the system, asks this process to end. It is called on a
/// thread of the system's.
pub(crate) fn on_console_end(asked: fn()) -> io::Result<()> {
    use std::sync::OnceLock;
    static ASKED: OnceLock<fn()> = OnceLock::new();
    unsafe extern "system" fn handler(event: u32) -> i32 {
        if let Some(asked) = ASKED.get() {
            asked();
        }
        if event != CTRL_BREAK_EVENT && event != CTRL_C_EVENT {
            // Closing, logging off, shutting down: the process ends when this returns, or at the
            // latest when the system loses its patience.
            loop {
                std::thread::park();
            }
        }
        1
    }
    let _ = ASKED.set(asked);
    // SAFETY: the handler is a function of the whole program's life and touches only statics.
    done(unsafe { SetConsoleCtrlHandler(Some(handler), 1) })
}

/// How long the system has been awake since its boot.
pub(crate) fn awake() -> Duration {
    let mut ticks = 0;
    // SAFETY: the place is writable. The call can't fail with one.
    unsafe { QueryUnbiasedInterruptTime(&mut ticks) };
    Duration::from_nanos(ticks.saturating_mul(100))
}

/// When this boot began, in 100 ns since 1601, whatever happened to the clock since.
pub(crate) fn booted_at() -> io::Result<i64> {
    /// As the system fills it; the documentation calls all of it reserved.
    #[repr(C)]
    #[derive(Default)]
    struct TimeOfDay {
        boot_time: i64,
        current_time: i64,
        time_zone_bias: i64,
        time_zone_id: u32,
        reserved: u32,
        /// By how much the clock was set since the boot; the boot time moved with it.
        boot_time_bias: u64,
        sleep_time_bias: u64,
    }
    let mut found = TimeOfDay::default();
    // SAFETY: the pointer and the length are those of one such structure.
    let status = unsafe {
        NtQuerySystemInformation(
            SystemTimeOfDayInformation,
            (&raw mut found).cast::<c_void>(),
            length_of::<TimeOfDay>(),
            null_mut(),
        )
    };
    if status < 0 || found.boot_time == 0 {
        return Err(io::Error::other(format!("status {status:#x}")));
    }
    Ok(found
        .boot_time
        .wrapping_sub(found.boot_time_bias.cast_signed()))
}

/// # Safety
/// The handle is this program's to close, and nobody else does.
unsafe fn owned(handle: HANDLE) -> io::Result<OwnedHandle> {
    if handle.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: by this function's own condition.
    Ok(unsafe { OwnedHandle::from_raw_handle(handle) })
}

fn done(result: i32) -> io::Result<()> {
    if result == 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

fn length_of<T>() -> u32 {
    u32::try_from(size_of::<T>()).unwrap_or(u32::MAX)
}

/// A text with its ending zero.
fn terminated(text: &OsStr) -> io::Result<Vec<u16>> {
    let mut wide: Vec<u16> = text.encode_wide().collect();
    if wide.contains(&0) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "a text with a NUL",
        ));
    }
    wide.push(0);
    Ok(wide)
}

/// An environment as Windows wants it: sorted without regard to case, each ending with a zero, and
/// one more at the end.
fn block(environment: &[(OsString, OsString)]) -> io::Result<Vec<u16>> {
    let mut sorted: Vec<&(OsString, OsString)> = environment.iter().collect();
    sorted.sort_by_key(|(name, _)| name.to_string_lossy().to_uppercase());
    let mut block = Vec::new();
    for (name, value) in sorted {
        let mut variable = name.clone();
        variable.push("=");
        variable.push(value);
        block.extend(terminated(&variable)?);
    }
    if block.is_empty() {
        block.push(0);
    }
    block.push(0);
    Ok(block)
}
