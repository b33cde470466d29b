//! The files of `cargo xtask dist`. The Debian package on a machine with systemd: installed, upgraded under load, removed and purged. Every
//! acknowledged event is stored once, no answer is cut, and only a purge deletes data.

mod archive;
mod in_flight;
mod refused;
mod roles;

use std::net::SocketAddr;
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};

use super::frame::{Frame, FrameOptions, short_with};
use super::kills::clients::Shared;
use super::kills::oracle::Oracle;
use super::kills::{acknowledged_while, judge_rows};
use crate::dist::{Compression, Release, VERSION};
use crate::machine::{Machine, Network};
use crate::wait::until;
use crate::{http, metrics, workspace};
use in_flight::{IS_SUCH, InFlight};
use testkit::ports::free_address;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// The number of upgrades.
    #[arg(long, default_value_t = 10)]
    upgrades: u32,
    /// Clients, each with one request at a time.
    #[arg(long, default_value_t = 64)]
    connections: u32,
    #[command(flatten)]
    frame: FrameOptions,
}

/// The timeout of each wait.
const LIMIT: Duration = Duration::from_secs(60);
/// The longest time for which an upgrade may close the port, on any machine.
const REFUSED_MAX: Duration = Duration::from_secs(30);
/// The longest time between two upgrades.
const LIFE_MILLISECONDS_MAX: u64 = 1_000;
const DATABASE: &str = "/var/lib/forebay/events.db";
const CONFIG: &str = "/etc/forebay/forebay.toml";
/// A line that an administrator has added.
const OWN_LINE: &str = "# of this machine\n";

/// Two upgrades of a package with the server that the tests were built with.
pub(crate) fn short() -> Result<()> {
    if let Some(obstacle) = Machine::obstacle() {
        workspace::skipped(&format!("a machine with systemd to install the package on: {obstacle}"))?;
        return Ok(());
    }
    short_with(&["sqlite3"], || run(&Options { upgrades: 2, connections: 32, frame: FrameOptions::short() }))
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let Options { upgrades, connections, .. } = *options;
    let frame = options.frame.begin(format!("package: {upgrades} upgrades, {connections} connections"))?;
    let Frame { binary, folder, .. } = &frame;
    archive::run_twice(binary, &folder.join("dist"))?;
    let [place, share] = ["machine", "share"].map(|name| folder.join(name));
    [&place, &share].into_iter().try_for_each(|path| workspace::empty_directory(path))?;
    let packages = (0..=upgrades).map(|number| package(binary, number, &share)).collect::<Result<Vec<_>>>()?;
    let machine = Machine::boot(&place, &share, Network::Shared)?;
    let installed = Installed { machine: &machine, intake: free_address(), admin: free_address() };
    let done = installed.live(&packages, connections, &frame).and_then(|()| {
        roles::run(&machine)?;
        installed.end()
    });
    if done.is_err() {
        let _ =
            machine.run("journalctl", &["--no-pager", "--lines=30", "--unit=forebay*"]).map(|log| eprintln!("{log}"));
    }
    done?;
    drop(machine);
    frame.end()
}

/// Builds the package with this number; a higher number is a newer version. Returns its path in the machine.
fn package(binary: &Path, number: u32, share: &Path) -> Result<String> {
    let version = format!("{VERSION}+{number}");
    let path = Release { binary, version: &version, compression: Compression::Quick, html: None }.debian(share)?;
    let name = path.file_name().context("a package has a name")?;
    Ok(format!("/mnt/{}", name.to_string_lossy()))
}

/// A machine with the package, and the addresses of its server.
struct Installed<'a> {
    machine: &'a Machine,
    intake: SocketAddr,
    admin: SocketAddr,
}

impl Installed<'_> {
    /// Installs the first package and upgrades to the others under load.
    fn live(&self, packages: &[String], connections: u32, frame: &Frame) -> Result<()> {
        let Some((first, newer)) = packages.split_first() else { bail!("nothing to install") };
        self.install(first)?;
        self.look_around()?;
        let shared = Shared::new(self.intake, frame.seed).with_whole_answers();
        let upgrades = |shared: &Shared| self.upgrade(newer, frame, shared);
        let (known, refused) = acknowledged_while(&shared, connections, upgrades)?;
        let milliseconds: Vec<_> = refused.iter().map(|time| format!("{:.0}", time.as_secs_f64() * 1e3)).collect();
        println!("the port was closed for {} ms", milliseconds.join(", "));
        ensure!(refused.iter().all(|time| *time < REFUSED_MAX), "an upgrade must not close the port for that long");
        self.reload()?;
        self.outlive_kill()?;
        self.wait_stored()?;
        self.systemctl("stop")?;
        let in_flight = self.select(&format!("count(*) from events where {IS_SUCH}"))?;
        ensure!(
            in_flight.trim() == newer.len().to_string(),
            "{} of {} in flight are stored",
            in_flight.trim(),
            newer.len()
        );
        let rows = self.select(&format!("payload from events where not {IS_SUCH}"))?;
        judge_rows(rows.as_bytes(), Oracle::new(frame.seed, known), &frame.folder)
    }

    /// Reads the store with SQLite's own program.
    fn select(&self, what: &str) -> Result<String> {
        self.machine.run("sqlite3", &["-readonly", DATABASE, &format!("select {what}")])
    }

    fn install(&self, package: &str) -> Result<()> {
        let variables = format!("FOREBAY_GATEWAY_LISTEN={}\nFOREBAY_GATEWAY_ADMIN={}\n", self.intake, self.admin);
        std::fs::write(self.machine.path("/etc/default/forebay"), variables).context("writing /etc/default/forebay")?;
        self.dpkg("--install", package)?;
        ensure!(self.is_ready(), "the service was started");
        let config = self.machine.path(CONFIG);
        let text = std::fs::read_to_string(&config).context("reading the configuration")?;
        std::fs::write(config, text + OWN_LINE).context("changing the configuration")
    }

    /// Checks the package's promises from outside.
    fn look_around(&self) -> Result<()> {
        let said = |program: &str, arguments: &[&str]| Ok(self.machine.run(program, arguments)?.trim().to_owned());
        let expect = |what: &str, found: Result<String>, expected: &str| {
            let found = found?;
            ensure!(found == expected, "{what}: {found:?} instead of {expected:?}");
            Ok(())
        };
        expect("enabled", said("systemctl", &["is-enabled", "forebay"]), "enabled")?;
        // An active service of this type has notified systemd.
        expect("type", said("systemctl", &["show", "--property=Type", "--value", "forebay"]), "notify")?;
        expect("the data", said("stat", &["--format=%U:%G %a", "/var/lib/forebay"]), "forebay:forebay 750")?;
        expect("the configuration", said("stat", &["--format=%U:%G %a", "/etc/forebay"]), "root:forebay 750")?;
        // Only the administrator's file has changed.
        expect("files", said("dpkg", &["--verify", "forebay"]), &format!("??5?????? c {CONFIG}"))?;
        let units = ["forebay", "forebay-gateway", "forebay-writer"].map(|name| format!("{name}.service"));
        let verify = [&["verify", "--man=no"], &units.each_ref().map(String::as_str)[..]].concat();
        expect("units", said("systemd-analyze", &verify), "")?;
        let status = std::fs::read_to_string(self.machine.path(&format!("/proc/{}/status", self.main_process()?)))?;
        for line in ["NoNewPrivs:\t1", "Seccomp:\t2", "CapBnd:\t0000000000000000", "CapEff:\t0000000000000000"] {
            ensure!(status.contains(line), "no {line:?} in {status}");
        }
        let completion = "source /usr/share/bash-completion/completions/forebay; COMP_WORDS=(forebay journal ver); COMP_CWORD=2; \
                          _forebay forebay ver journal; echo \"${COMPREPLY[@]}\"";
        expect("completions", said("bash", &["-c", completion]), "verify")?;
        said("gzip", &["--test", "/usr/share/man/man1/forebay-journal-verify.1.gz"])?;
        Ok(())
    }

    /// Upgrades at random times. Returns for each upgrade how long the port was closed.
    fn upgrade(&self, packages: &[String], frame: &Frame, shared: &Shared) -> Result<Vec<Duration>> {
        let mut random = frame.random();
        shared.server_is_up();
        let mut refused = Vec::new();
        for package in packages {
            thread::sleep(Duration::from_micros(random.below(LIFE_MILLISECONDS_MAX * 1_000)));
            let (before, taken) = (self.main_process()?, shared.taken());
            refused.push(refused::longest_while(self.intake, || self.replace_by(package, refused.len()))?);
            ensure!(self.main_process()? != before, "the service runs what was installed");
            // Clients that found the port closed wait for this.
            shared.server_is_up();
            until("the new version takes events", LIMIT, || Ok(shared.taken() > taken))?;
        }
        let config = std::fs::read_to_string(self.machine.path(CONFIG)).context("reading the configuration")?;
        ensure!(config.ends_with(OWN_LINE), "an upgrade keeps the configuration");
        Ok(refused)
    }

    /// Upgrades while a request is in flight.
    fn replace_by(&self, package: &str, number: usize) -> Result<()> {
        let in_flight = InFlight::begin(self.intake, number)?;
        thread::scope(|scope| {
            let ended = scope.spawn(|| in_flight.end());
            self.dpkg("--install", package)?;
            ended.join().map_err(|_| anyhow!("a client panicked"))?
        })
    }

    fn reload(&self) -> Result<()> {
        self.systemctl("reload")?;
        let applied = || Ok(metrics::sum_with(&self.metrics()?, "forebay_reloads_total", "applied") > 0.0);
        until("the configuration is read again", LIMIT, applied)
    }

    /// Kills the server: systemd restarts it.
    fn outlive_kill(&self) -> Result<()> {
        let before = self.main_process()?;
        self.machine.run("kill", &["-KILL", &before])?;
        until("there is another process", LIMIT, || Ok(self.main_process()? != before && self.is_ready()))
    }

    /// Removes the package, which keeps the data, and purges it, which deletes them.
    fn end(&self) -> Result<()> {
        self.systemctl("start")?;
        ensure!(self.is_ready(), "`systemctl start` returns when requests are accepted");
        self.dpkg("--remove", "forebay")?;
        ensure!(!self.is_ready(), "a package that is removed doesn't run");
        for kept in [DATABASE, CONFIG] {
            ensure!(self.machine.path(kept).is_file(), "removing the package keeps {kept}");
        }
        let said = self.dpkg("--purge", "forebay")?;
        ensure!(said.contains("removes all events"), "purging names the files that it keeps: {said}");
        let data = ["", "-gateway", "-writer"].map(|role| format!("/var/lib/forebay{role}"));
        for gone in data.iter().map(String::as_str).chain(["/etc/forebay", "/usr/bin/forebay"]) {
            ensure!(!self.machine.path(gone).exists(), "purging removes {gone}");
        }
        Ok(())
    }

    fn dpkg(&self, action: &str, argument: &str) -> Result<String> {
        self.machine.run("dpkg", &[action, argument])
    }

    fn systemctl(&self, action: &str) -> Result<()> {
        self.machine.run("systemctl", &[action, "forebay"]).map(drop)
    }

    /// The id of the service's process in the machine's namespace.
    fn main_process(&self) -> Result<String> {
        let shown = self.machine.run("systemctl", &["show", "--property=MainPID", "--value", "forebay"])?;
        Ok(shown.trim().to_owned())
    }

    fn is_ready(&self) -> bool {
        http::is_ready(self.intake)
    }

    fn metrics(&self) -> Result<String> {
        Ok(String::from_utf8(http::get(self.admin, "/metrics").context("asking for metrics")?.body)?)
    }

    fn wait_stored(&self) -> Result<()> {
        until("all is stored", LIMIT, || Ok(metrics::sum(&self.metrics()?, "forebay_events_pending") <= 0.0))
    }
}
