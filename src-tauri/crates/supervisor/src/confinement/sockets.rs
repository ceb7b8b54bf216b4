//! No socket that leads out of the sandbox, and no way around that (seccomp).
//!
//! A network namespace has no say over Unix sockets that have a path, nor over sockets to the
//! machine's own hypervisor: whoever can see the path can connect, also on a read-only mount. So only
//! the families that the namespace does hold can be made.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};

/// Families that the network namespace holds.
const FAMILIES: [i32; 3] = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// Calls that reach what no namespace holds (key rings), that do other calls' work unseen
/// (io_uring), or that a look has no use for.
const REFUSED: [i64; 9] = [
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_pidfd_getfd,
];

/// The bit that marks the second table of calls on x86-64.
const SECOND_TABLE: i64 = 0x4000_0000;

/// Forbids it for this thread and all that it becomes or starts. The call fails there with EPERM;
/// a program for another processor is ended.
pub(super) fn forbid() -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| format!("seccomp: {error}");
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|_| {
        format!(
            "no filter is written for this processor ({})",
            std::env::consts::ARCH
        )
    })?;
    let rules = rules().map_err(|error| failed(&error))?;
    let refusal = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let program: BpfProgram = SeccompFilter::new(rules, SeccompAction::Allow, refusal, arch)
        .and_then(BpfProgram::try_from)
        .map_err(|error| failed(&error))?;
    apply_filter(&program).map_err(|error| failed(&error))
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn rules() -> Result<Rules, seccompiler::BackendError> {
    let mut rules = Rules::new();
    let foreign = FAMILIES
        .iter()
        .map(|family| argument(0, SeccompCmpOp::Ne, u64::from(family.unsigned_abs())))
        .collect::<Result<Vec<_>, _>>()?;
    insert(
        &mut rules,
        libc::SYS_socket,
        vec![SeccompRule::new(foreign)?],
    );
    // Programs talk to their children by pairs of connected sockets. One that is not connected for
    // good could be pointed at a path.
    let datagram = argument(
        1,
        SeccompCmpOp::MaskedEq(0xf),
        u64::from(libc::SOCK_DGRAM.unsigned_abs()),
    )?;
    insert(
        &mut rules,
        libc::SYS_socketpair,
        vec![SeccompRule::new(vec![datagram])?],
    );
    for call in REFUSED {
        // Without a condition: always.
        insert(&mut rules, call, Vec::new());
    }
    Ok(rules)
}

fn argument(
    index: u8,
    operator: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(index, SeccompCmpArgLen::Dword, operator, value)
}

fn insert(rules: &mut Rules, call: i64, conditions: Vec<SeccompRule>) {
    if cfg!(target_arch = "x86_64") {
        rules.insert(call | SECOND_TABLE, conditions.clone());
    }
    rules.insert(call, conditions);
}
