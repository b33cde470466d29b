//! A machine on which packages can be installed: systemd in its own namespaces, on an overlay in memory over this machine's disk. This machine
//! doesn't change, and the overlay is removed with the value.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::Pid;

use crate::wait::until;
use crate::workspace::{has_program, output};

const BOOT: &str = include_str!("machine/boot.sh");
const BOOT_MAX: Duration = Duration::from_secs(60);
const SYSTEMD: &str = "/lib/systemd/systemd";
const PROGRAMS: &[&str] = &["dpkg", "adduser", "deb-systemd-invoke", "unshare", "nsenter", "mount"];

/// The network of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Network {
    /// That of this machine.
    Shared,
    /// Only a loopback interface, on which all ports are free. `ip link set lo up` starts it.
    Separate,
}

/// A running machine.
pub(crate) struct Machine {
    /// `unshare`. When it ends, it kills the first process of the machine.
    unshare: Child,
    init: Pid,
    cgroup: PathBuf,
    network: Network,
}

impl Machine {
    /// The reason if no machine can be started here.
    pub(crate) fn obstacle() -> Option<String> {
        if !rustix::process::geteuid().is_root() {
            return Some("only root can make one".into());
        }
        let programs = PROGRAMS.iter().filter(|program| !has_program(program)).map(|program| (*program).to_owned());
        let systemd = (!Path::new(SYSTEMD).is_file()).then(|| SYSTEMD.to_owned());
        let missing: Vec<String> = programs.chain(systemd).collect();
        if !missing.is_empty() {
            return Some(format!("missing: {}", missing.join(", ")));
        }
        // Root in a container often lacks the permission to mount.
        let mut unshare = Command::new("unshare");
        unshare.args(["--mount", "--pid", "--fork", "--cgroup", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]);
        let may_mount = unshare.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
        (!may_mount || control_groups().is_none()).then(|| "this root may not mount, or has no control groups".into())
    }

    /// Boots a machine. `folder` is empty, `share` is mounted at the machine's `/mnt`.
    pub(crate) fn boot(folder: &Path, share: &Path, network: Network) -> Result<Self> {
        let cgroup = control_groups().context("no control groups (version 2) are mounted")?;
        let cgroup = cgroup.join(format!("forebay-package-{}", std::process::id()));
        fs::create_dir(&cgroup).with_context(|| format!("making {}", cgroup.display()))?;
        let join = "echo $$ >\"$0/cgroup.procs\"; exec unshare --mount --propagation private --pid --fork --kill-child --ipc --uts \
                    --cgroup $4 sh -c \"$1\" boot \"$2\" \"$3\"";
        let mut unshare = Command::new("sh");
        unshare.args(["-c", join]).arg(&cgroup).arg(BOOT).args([folder, share]);
        unshare.arg(if network == Network::Separate { "--net" } else { "" }).stdin(Stdio::null());
        let mut unshare = unshare.spawn().context("starting unshare")?;
        let mut init = None;
        until("the machine boots", BOOT_MAX, || {
            init = first_child(&mut unshare, &cgroup)?;
            Ok(init.is_some())
        })?;
        let machine = Self { init: init.context("the machine has booted")?, unshare, cgroup, network };
        let is_up = || Ok(machine.command("systemctl").arg("is-system-running").output()?.status.success());
        until("systemd is up", BOOT_MAX, is_up)?;
        machine.run("systemctl", &["start", "systemd-journald"])?;
        Ok(machine)
    }

    /// A command that runs in the machine, as root.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.init.as_raw_nonzero().to_string()]);
        command.args(["--mount", "--pid", "--ipc", "--uts", "--cgroup", "--root", "--wd"]);
        if self.network == Network::Separate {
            command.arg("--net");
        }
        command.args(["--", program]);
        command.stdin(Stdio::null()).env("DEBIAN_FRONTEND", "noninteractive");
        command
    }

    /// Runs a program in the machine. Returns its standard output.
    pub(crate) fn run(&self, program: &str, arguments: &[&str]) -> Result<String> {
        output(self.command(program).args(arguments))
    }

    /// This machine's path of a path in the machine.
    pub(crate) fn path(&self, inside: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{inside}", self.init.as_raw_nonzero()))
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // This kills the first process of the machine, and thereby all others.
        let _ = self.unshare.kill();
        let _ = self.unshare.wait();
        if let Err(error) = until("its processes are gone", BOOT_MAX, || Ok(remove_groups(&self.cgroup).is_ok())) {
            eprintln!("{} is left: {error:#}", self.cgroup.display());
        }
    }
}

/// The first process of the machine, after it has started.
fn first_child(unshare: &mut Child, cgroup: &Path) -> Result<Option<Pid>> {
    if let Some(status) = unshare.try_wait()? {
        let _ = remove_groups(cgroup);
        bail!("the machine couldn't boot: {status}");
    }
    let id = unshare.id();
    let children =
        fs::read_to_string(format!("/proc/{id}/task/{id}/children")).context("asking for a child process")?;
    let child = children.split_whitespace().next().and_then(|child| child.parse().ok()).and_then(Pid::from_raw);
    // Before systemd, this process is the shell that mounts.
    let is_systemd = |child: &Pid| {
        let name = fs::read_to_string(format!("/proc/{}/comm", child.as_raw_nonzero()));
        name.is_ok_and(|name| name.trim() == "systemd")
    };
    Ok(child.filter(is_systemd))
}

/// The mount point of control groups of version 2.
fn control_groups() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let line = mounts.lines().find(|line| line.contains(" - cgroup2 "))?;
    line.split(' ').nth(4).map(PathBuf::from)
}

/// Removes a control group and its children. This fails while one has a process.
fn remove_groups(group: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(group)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_groups(&entry.path())?;
        }
    }
    fs::remove_dir(group)
}
