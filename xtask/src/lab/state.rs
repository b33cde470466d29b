//! The lab's processes, written down in its folder: later commands find them there, and end no others.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

use super::figures;
use crate::wait::until;

const FILE: &str = "state.json";
/// A gateway delivers for up to 10 s when it stops, and a writer answers as long.
const END_LIMIT: Duration = Duration::from_secs(15);
const KILLED_LIMIT: Duration = Duration::from_secs(5);

/// The kind of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Kind {
    Postgres,
    Writer,
    Gateway,
    Proxy,
    /// A server or a worker of `--bus`.
    Bus,
}

/// A process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Member {
    pub(super) name: String,
    kind: Kind,
    pub(super) pid: u32,
    /// When it was started, in ticks since the machine was: a later process may have its id.
    started: u64,
    admin: Option<SocketAddr>,
    /// A folder outside of the lab's.
    pub(super) folder: Option<PathBuf>,
}

/// All of them in the order in which they were started.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    pub(super) members: Vec<Member>,
}

impl State {
    /// The recorded state; nothing if there is no lab.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(FILE);
        if !path.exists() {
            return Ok(Self::default());
        }
        let text = std::fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("{} isn't what a lab writes", path.display()))
    }

    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        let path = folder.join(FILE);
        std::fs::write(&path, serde_json::to_vec_pretty(self)?).with_context(|| format!("writing {}", path.display()))
    }

    /// Ends all processes, the last one first, and removes the folders that they have outside of the lab's.
    pub(super) fn end_all(&self) -> Result<()> {
        for member in self.members.iter().rev() {
            member.end()?;
            if let Some(folder) = member.folder.as_ref().filter(|folder| folder.exists()) {
                std::fs::remove_dir_all(folder).with_context(|| format!("removing {}", folder.display()))?;
            }
        }
        Ok(())
    }

    /// The command that opens the store.
    pub(super) fn psql(&self) -> Option<String> {
        let folder = self.store_folder()?;
        Some(format!("rows:     psql -h {} -U postgres -c 'select * from events limit 10'", folder.display()))
    }

    /// Rows in the store; none if there is no table yet.
    pub(super) fn rows(&self) -> Option<u64> {
        let mut psql = Command::new("psql");
        psql.args(["-X", "-A", "-t", "-U", "postgres", "-c", "select count(*) from events", "-h"]);
        let output = psql.arg(self.store_folder()?).output().ok()?;
        String::from_utf8(output.stdout).ok()?.trim().parse().ok()
    }

    fn store_folder(&self) -> Option<&Path> {
        self.members.iter().find_map(|member| member.folder.as_deref())
    }
}

impl Member {
    /// A process that runs now.
    pub(super) fn new(name: String, kind: Kind, pid: u32, admin: Option<SocketAddr>) -> Result<Self> {
        let started = started(pid).with_context(|| format!("{name} ended immediately"))?;
        Ok(Self { name, kind, pid, started, admin, folder: None })
    }

    /// Whether it still runs.
    pub(super) fn is_alive(&self) -> bool {
        started(self.pid) == Some(self.started)
    }

    /// Ends it in an orderly way, or else by SIGKILL.
    fn end(&self) -> Result<()> {
        // PostgreSQL would wait for its clients otherwise.
        let signal = if self.kind == Kind::Postgres { Signal::INT } else { Signal::TERM };
        for (signal, limit) in [(signal, END_LIMIT), (Signal::KILL, KILLED_LIMIT)] {
            if self.ends_by(signal, limit)? {
                return Ok(());
            }
        }
        bail!("{} doesn't end: process {}", self.name, self.pid)
    }

    fn ends_by(&self, signal: Signal, limit: Duration) -> Result<bool> {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw).context("a process has an id")?;
        if self.is_alive() {
            // It may end at this moment.
            let _ = kill_process(pid, signal);
        }
        Ok(until("it ends", limit, || Ok(!self.is_alive())).is_ok())
    }

    /// How it does, as a line.
    pub(super) fn line(&self) -> String {
        let life = if self.is_alive() { "runs" } else { "has ended" };
        let names: &[(&str, &str)] = match self.kind {
            Kind::Gateway => &[("forebay_events_accepted_total", "accepted"), ("forebay_events_pending", "pending")],
            Kind::Writer => &[("forebay_writer_batches_total", "batches"), ("forebay_writer_records_total", "records")],
            Kind::Postgres | Kind::Proxy | Kind::Bus => &[],
        };
        let admin = self.admin.filter(|_| self.is_alive());
        let figures = admin.and_then(|admin| Some(format!("{}; http://{admin}/metrics", figures(admin, names)?)));
        format!("{:<13} process {:<8} {life:<10} {}", self.name, self.pid, figures.unwrap_or_default())
            .trim_end()
            .to_owned()
    }
}

/// When a process was started; none if it has ended, even if its exit status hasn't been read.
fn started(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    if fields.first() == Some(&"Z") {
        return None;
    }
    // The 22nd of all fields.
    fields.get(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper() -> std::process::Child {
        Command::new("sleep").arg("600").spawn().unwrap()
    }

    #[test]
    fn processes_are_found_again_and_ended() {
        let folder = std::env::temp_dir().join(format!("forebay-lab-state-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        assert_eq!(State::read(&folder).unwrap(), State::default());
        let mut child = sleeper();
        let members = vec![Member::new("one".into(), Kind::Proxy, child.id(), None).unwrap()];
        State { members }.write(&folder).unwrap();
        let state = State::read(&folder).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(state.members[0].is_alive() && state.members[0].line().contains("runs"));
        state.end_all().unwrap();
        assert!(!state.members[0].is_alive() && state.members[0].line().contains("has ended"));
        assert!(!child.wait().unwrap().success());
        state.end_all().unwrap();
    }

    #[test]
    fn later_process_with_same_id_is_kept() {
        let mut child = sleeper();
        let mut member = Member::new("one".into(), Kind::Proxy, child.id(), None).unwrap();
        member.started -= 1;
        assert!(!member.is_alive());
        member.end().unwrap();
        assert_eq!(child.try_wait().unwrap(), None);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
