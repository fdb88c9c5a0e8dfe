//! The calls to the kernel. They confine the calling thread and what it starts, and cannot be taken back.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, PathBeneath, PathFd, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, RulesetStatus, Scope,
};
use rustix::thread::{CapabilitySet, CapabilitySets};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

use super::{Cargo, Rules};

/// The first ABI without a hole in writing: before it, files anywhere could be emptied (Linux 6.2).
const REQUIRED: ABI = ABI::V3;

/// Devices that commands write to.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Tries it on a thread of its own.
pub(crate) fn probe() -> Result<(), String> {
    let rules = Rules { readable: vec![PathBuf::from("/")], writable: Vec::new(), network: false, cargo: None };
    let tried = std::thread::spawn(move || {
        apply(&rules)?;
        let place = std::env::temp_dir().join(format!("iudex-probe-{}", std::process::id()));
        if std::fs::write(&place, "").is_ok() {
            let _ = std::fs::remove_file(&place);
            return Err("a write got through".to_owned());
        }
        if std::net::UdpSocket::bind("127.0.0.1:0").is_ok() {
            return Err("a socket got through".to_owned());
        }
        Ok(())
    });
    tried.join().unwrap_or_else(|_| Err("the attempt broke off".to_owned()))
}

/// Whether a confined command is kept from signals to its supervisor (Linux 6.12).
pub(crate) fn holds_signals() -> bool {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    ruleset.scope(Scope::Signal).and_then(Ruleset::create).is_ok()
}

/// Confines this thread.
///
/// # Errors
/// What the kernel cannot enforce; nothing may be started then.
pub(crate) fn apply(rules: &Rules) -> Result<(), String> {
    restrict_files(rules)?;
    restrict_sockets(rules.network)?;
    drop_capabilities()?;
    if let Some(cargo) = &rules.cargo {
        // Only now, so that a link of a command's making leads nowhere.
        link_cargo(cargo, rules.network);
    }
    Ok(())
}

/// Inside bubblewrap with a network: keeps this process from sockets that have a name and no file, which only a
/// network namespace would keep away. Where the kernel (before 6.12) cannot, nothing else depends on it.
pub(crate) fn scope_sockets() {
    let _ = Ruleset::default()
        .scope(Scope::AbstractUnixSocket)
        .and_then(Ruleset::create)
        .and_then(landlock::RulesetCreated::restrict_self);
}

fn restrict_files(rules: &Rules) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| {
        format!("Landlock of Linux 6.2 or later (ABI 3) is needed and does not work here: {error}")
    };
    let read = AccessFs::from_read(REQUIRED);
    // A device made in the work directory would be a way around every rule.
    let write = AccessFs::from_all(REQUIRED) & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(REQUIRED))
        .map_err(|error| failed(&error))?
        // Later kernels hold more; the rest of this module does not depend on it.
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::IoctlDev)
        .and_then(|ruleset| ruleset.scope(Scope::Signal | Scope::AbstractUnixSocket))
        .map_err(|error| failed(&error))?;
    if !rules.network {
        ruleset = ruleset.handle_access(AccessNet::from_all(ABI::V4)).map_err(|error| failed(&error))?;
    }
    let granted = rules
        .readable
        .iter()
        .map(|path| (path.as_path(), read))
        .chain(rules.writable.iter().map(|path| (path.as_path(), write)))
        .chain(DEVICES.iter().map(|path| (Path::new(*path), read | AccessFs::WriteFile | AccessFs::Truncate)));
    let rules = granted.filter_map(|(path, access)| beneath(path, access)).map(Ok::<_, landlock::RulesetError>);
    let status = ruleset
        .create()
        .and_then(|ruleset| ruleset.add_rules(rules))
        .and_then(landlock::RulesetCreated::restrict_self)
        .map_err(|error| failed(&error))?;
    if status.ruleset == RulesetStatus::NotEnforced || !status.no_new_privs {
        return Err(failed(&"the kernel did not enforce the rules"));
    }
    Ok(())
}

/// `None` for what cannot be opened: nothing is granted there.
fn beneath(path: &Path, access: BitFlags<AccessFs>) -> Option<PathBeneath<PathFd>> {
    let access = if path.is_dir() { access } else { access & AccessFs::from_file(REQUIRED) };
    PathFd::new(path).ok().map(|place| PathBeneath::new(place, access))
}

/// Sockets by family: `AF_NETLINK` (addresses of the machine, read by name resolution), the internet with a network,
/// nothing else. Unix sockets would lead to daemons with more rights; pairs of them (`socketpair`) stay.
fn restrict_sockets(network: bool) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| format!("seccomp does not work here: {error}");
    let mut families = vec![libc::AF_NETLINK];
    if network {
        families.extend([libc::AF_INET, libc::AF_INET6]);
    }
    let is_other = families
        .into_iter()
        .map(|family| {
            SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, u64::from(family.unsigned_abs()))
        })
        .collect::<Result<Vec<_>, _>>()
        .and_then(SeccompRule::new)
        .map_err(|error| failed(&error))?;
    let mut denied = vec![
        (libc::SYS_socket, vec![is_other]),
        // It opens sockets past this filter.
        (libc::SYS_io_uring_setup, Vec::new()),
    ];
    if cfg!(target_arch = "x86_64") {
        // The same calls by their numbers in the x32 table.
        let twins: Vec<_> = denied.iter().map(|(number, rules)| (number | 0x4000_0000, rules.clone())).collect();
        denied.extend(twins);
    }
    let architecture = std::env::consts::ARCH.try_into().map_err(|error| failed(&error))?;
    let refusal = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let filter = SeccompFilter::new(denied.into_iter().collect(), SeccompAction::Allow, refusal, architecture)
        .map_err(|error| failed(&error))?;
    let program: BpfProgram = filter.try_into().map_err(|error| failed(&error))?;
    seccompiler::apply_filter(&program).map_err(|error| failed(&error))
}

/// Root without capabilities; `no_new_privs`, set above, keeps the next execution from bringing them back.
fn drop_capabilities() -> Result<(), String> {
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    rustix::thread::set_capabilities(None, none).map_err(|error| format!("capabilities cannot be dropped: {error}"))
}

/// The `CARGO_HOME` of this command leads to the private and to the user's parts by links (the user's are read-only by
/// the rules above). It is new: settings that another command left are not in it. What does not work costs a download.
fn link_cargo(cargo: &Cargo, network: bool) {
    let link = |source: &Path, place: &Path| {
        if source.exists() {
            let _ = std::os::unix::fs::symlink(source, place);
        }
    };
    let (store, place) = (&cargo.store, &cargo.place);
    let _ = std::fs::create_dir_all(store.join("registry"));
    let _ = std::fs::create_dir_all(place);
    link(&store.join("registry"), &place.join("registry"));
    let user_git = cargo.user.as_ref().map(|user| user.join("git")).filter(|git| !network && git.exists());
    if user_git.is_none() && !store.join("git").is_symlink() {
        let _ = std::fs::create_dir_all(store.join("git"));
    }
    link(&user_git.unwrap_or_else(|| store.join("git")), &place.join("git"));
    let Some(user) = &cargo.user else { return };
    for part in ["bin", "config.toml", "config"] {
        link(&user.join(part), &place.join(part));
    }
    for part in ["registry/index", "registry/cache"] {
        let stays = store.join(part);
        if stays.is_symlink() {
            let _ = std::fs::remove_file(&stays);
        }
        if !network {
            link(&user.join(part), &stays);
        }
    }
}
