//! The request: what the host wants to have run, written before the supervisor is launched.
//!
//! Guarantees: it is private, whole, and used only by a supervisor that speaks its protocol, in its
//! own boot, in the folder of its own attempt. Texts of the system (program, arguments,
//! environment, folders) are kept byte for byte.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::SupervisorError;
use crate::folder::{self, REQUEST, acceptable_attempt_id, check_private_folder, read_checked};
use crate::{PROTOCOL, SUPPORTED, identity};

/// The largest request that is read, in bytes.
const LIMIT: u64 = 8 << 20;

/// What happens to a running command when its host is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnHostLoss {
    /// It runs on, and its receipt waits.
    Finish,
    /// Its tree is ended.
    Stop,
}

/// A host process: a pid is one only together with its start time (SV-06).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostIdentity {
    /// Process id.
    pub pid: u32,
    /// As `process_start_time` gives it.
    pub start_time: u64,
}

impl HostIdentity {
    /// The calling process.
    ///
    /// # Errors
    /// `unsupported_platform` where commands are not supported.
    pub fn current() -> Result<Self, SupervisorError> {
        let pid = std::process::id();
        match identity::process_start_time(pid)? {
            Some(start_time) => Ok(Self { pid, start_time }),
            None => Err(SupervisorError::io("reading this process's start time")(
                io::ErrorKind::NotFound.into(),
            )),
        }
    }
}

/// One command to run under supervision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Protocol of the host that writes it: `PROTOCOL`.
    pub protocol: u32,
    /// The attempt: 1 to 64 letters, digits, `_` or `-`.
    pub attempt_id: String,
    /// Digest of the arguments, repeated in the receipt.
    pub argument_digest: String,
    /// The program; without a slash it is looked for in the environment's PATH.
    /// On Windows `cmd` gets its last argument as it is, without any quoting.
    #[serde(with = "system_text")]
    pub program: OsString,
    /// Its arguments.
    #[serde(with = "system_text::list")]
    pub args: Vec<OsString>,
    /// Where it runs: an absolute folder.
    #[serde(with = "system_text::path")]
    pub cwd: PathBuf,
    /// Its whole environment; the supervisor adds `HOLDFAST_ATTEMPT_ID` and nothing else.
    #[serde(with = "system_text::pairs")]
    pub env: Vec<(OsString, OsString)>,
    /// Milliseconds awake after which the tree is ended; `None`: no limit.
    pub timeout_ms: Option<u64>,
    /// Milliseconds between TERM and KILL: 2000 as a rule, an hour at most (SV-03).
    pub grace_ms: u64,
    /// Bytes of output that are kept.
    pub output_cap: u64,
    /// What the loss of the host means.
    pub on_host_loss: OnHostLoss,
    /// The host that asks.
    pub host: HostIdentity,
    /// The boot in which it asks.
    pub boot_id: String,
    /// A short private folder for the socket; `None`: files and lock only (SV-07).
    #[serde(with = "system_text::optional_path")]
    pub runtime_folder: Option<PathBuf>,
}

impl Request {
    fn check(&self) -> Result<(), SupervisorError> {
        let refuse = |reason: &str| {
            Err(SupervisorError::RequestRefused {
                reason: reason.to_owned(),
            })
        };
        if self.protocol != PROTOCOL {
            return refuse(&format!(
                "it speaks protocol {}, this supervisor speaks {PROTOCOL}",
                self.protocol
            ));
        }
        if !acceptable_attempt_id(&self.attempt_id) {
            return refuse("its attempt id is not 1 to 64 letters, digits, _ or -");
        }
        if !self.cwd.is_absolute() {
            return refuse("its working folder is not an absolute path");
        }
        if self.program.is_empty() {
            return refuse("it names no program");
        }
        Ok(())
    }
}

/// Makes the attempt's effect folder below `effects_root` and writes the request into it. Nothing
/// is synced: the log's start record is what survives the machine.
///
/// # Errors
/// `request_refused`, `effect_folder_exists`, `supervisor_io`; `unsupported_platform` where commands
/// are not supported.
pub fn prepare(effects_root: &Path, request: &Request) -> Result<PathBuf, SupervisorError> {
    if !SUPPORTED {
        return Err(SupervisorError::UnsupportedPlatform);
    }
    request.check()?;
    holdfast_files::create_private_folder(effects_root)
        .map_err(SupervisorError::io("creating the effects folder"))?;
    let folder = folder::of(effects_root, &request.attempt_id);
    folder::create_folder(&folder).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => SupervisorError::FolderExists,
        _ => SupervisorError::io("creating the effect folder")(error),
    })?;
    let content = serde_json::to_vec(request)
        .map_err(|error| SupervisorError::io("writing the request")(error.into()))?;
    folder::create_new(&folder.join(REQUEST))
        .and_then(|mut file| file.write_all(&content))
        .map_err(SupervisorError::io("writing the request"))?;
    Ok(folder)
}

/// Reads and checks the request of a folder.
///
/// # Errors
/// `request_refused`, `foreign_file`, `supervisor_io`.
pub fn read(folder: &Path) -> Result<Request, SupervisorError> {
    let refused = |reason: String| SupervisorError::RequestRefused { reason };
    check_private_folder(folder).map_err(|reason| refused(format!("its folder: {reason}")))?;
    let content = read_checked(folder, REQUEST, LIMIT)?
        .ok_or_else(|| refused("there is no file `request`".to_owned()))?;
    /// Read first, since another protocol may have other fields.
    #[derive(Deserialize)]
    struct Head {
        protocol: u32,
    }
    let head: Head = serde_json::from_slice(&content)
        .map_err(|error| refused(format!("it can't be read ({error})")))?;
    if head.protocol != PROTOCOL {
        return Err(refused(format!(
            "it speaks protocol {}, this supervisor speaks {PROTOCOL}",
            head.protocol
        )));
    }
    let request: Request = serde_json::from_slice(&content)
        .map_err(|error| refused(format!("it can't be read ({error})")))?;
    request.check()?;
    if folder.file_name() != Some(request.attempt_id.as_ref()) {
        return Err(refused("it lies in another attempt's folder".to_owned()));
    }
    Ok(request)
}

mod system_text;
