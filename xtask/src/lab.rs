//! `cargo xtask lab`: two gateways, three writers, PostgreSQL, and HAProxy in front, on this machine from nothing in seconds. They live on
//! when the command has ended: `down` ends them and removes what they left.

mod bus;
mod layout;
mod state;

use std::fs::File;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Subcommand;

use crate::http::{self, Connection};
use crate::metrics;
use crate::server::{Launch, ProcessRole, tail};
use crate::store::{CampaignStore, PostgresStore, StoreServer};
use crate::two_services::{SinkSpec, gateway_config, writer_config};
use crate::wait::until;
use crate::workspace;
use layout::{GATEWAYS, Ports, WRITERS};
use state::{Kind, Member, State};
use testkit::ports::free_port;
use testkit::postgres::PostgresServer;

/// Options of `cargo xtask lab`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Order,
}

#[derive(Subcommand)]
enum Order {
    /// Starts everything, and prints where to post and where the pages are.
    Up(Options),
    /// Ends everything and removes what it left.
    Down,
    /// Shows each process, what is pending, and the addresses.
    Status,
}

#[derive(clap::Args)]
struct Options {
    /// The port to post to; the others are up to 50 above it.
    #[arg(long, default_value_t = 8480)]
    port: u16,
    /// A server for both roles; without it `target/release/forebay`, which is built where it is missing.
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Also starts NATS with two services, which the gateways' bridges reach, and etcd, where the writers register.
    #[arg(long)]
    bus: bool,
}

const SINK: &str = "warehouse";
const READY_LIMIT: Duration = Duration::from_secs(20);

/// Runs the command of the command line.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let lab = Lab { folder: workspace::target_directory()?.join("lab") };
    match &arguments.command {
        Order::Up(options) => {
            if options.bus {
                bus::require()?;
            }
            lab.up(&binary(options.binary.as_deref())?, Ports::from(options.port), options.bus)
        }
        Order::Down => lab.down(),
        Order::Status => lab.status(),
    }
}

/// Separate labs, the second one with a bus.
pub(crate) fn short() -> Result<()> {
    short_lab(false)?;
    if bus::is_there() {
        return short_lab(true);
    }
    workspace::skipped(
        "etcd, Go, NATS or a worker of examples/bridge is missing, which `cargo xtask services` installs",
    )
}

/// An event goes in at HAProxy and is in PostgreSQL, and afterwards no process and no file is left.
fn short_lab(has_bus: bool) -> Result<()> {
    if !workspace::has_program("haproxy") || !PostgresServer::is_installed() {
        workspace::skipped("HAProxy or PostgreSQL is missing, which `cargo xtask services` installs")?;
        return Ok(());
    }
    let binary = workspace::tested_binary(None)?;
    let lab = Lab { folder: workspace::target_directory()?.join(format!("lab-{}", std::process::id())) };
    let is_free = |ports: &Ports| ports.all().all(|address| refuse_used(address).is_ok());
    let ports = std::iter::repeat_with(|| Ports::from(free_port())).find(is_free).context("no ports are free")?;
    lab.up(&binary, ports, has_bus)?;
    let checked = lab.check(ports).and_then(|()| if has_bus { bus::check(ports) } else { Ok(()) });
    let members = State::read(&lab.folder)?.members;
    lab.down()?;
    checked?;
    if let Some(left) = members.iter().find(|member| member.is_alive()) {
        bail!("{} is still running, process {}", left.name, left.pid);
    }
    if lab.folder.exists() || members.iter().any(|member| member.folder.as_ref().is_some_and(|folder| folder.exists()))
    {
        bail!("the lab left files");
    }
    Ok(())
}

fn binary(given: Option<&Path>) -> Result<PathBuf> {
    let built = workspace::target_directory()?.join("release").join("forebay");
    let found = given.or_else(|| built.is_file().then_some(&*built));
    workspace::tested_binary(found)
}

/// The folder of its files.
struct Lab {
    folder: PathBuf,
}

impl Lab {
    fn up(&self, binary: &Path, ports: Ports, has_bus: bool) -> Result<()> {
        if !workspace::has_program("haproxy") {
            bail!("HAProxy is missing: `cargo xtask services` installs it");
        }
        if State::read(&self.folder)?.members.iter().any(Member::is_alive) {
            bail!("a lab is up: see `cargo xtask lab status`, or end it with `cargo xtask lab down`");
        }
        ports.all().try_for_each(refuse_used)?;
        workspace::empty_directory(&self.folder)?;
        let begun = Instant::now();
        let mut state = State::default();
        if let Err(error) = self.start_all(binary, ports, has_bus, &mut state) {
            state.end_all()?;
            std::fs::remove_dir_all(&self.folder)?;
            return Err(error);
        }
        println!("up after {:.1} s", begun.elapsed().as_secs_f64());
        ports.print(has_bus);
        println!("{}", state.psql().unwrap_or_default());
        Ok(())
    }

    fn start_all(&self, binary: &Path, ports: Ports, has_bus: bool, state: &mut State) -> Result<()> {
        if has_bus {
            self.start_bus(state, ports)?;
        }
        let store = PostgresStore::require()?;
        let settings = store.sink();
        let (pid, folder) = store.leave_running()?;
        let mut member = Member::new("postgresql".into(), Kind::Postgres, pid, None)?;
        member.folder = Some(folder);
        self.record(state, member)?;

        let sinks = [SinkSpec { name: SINK, settings: &settings }];
        let mut started = Vec::new();
        for number in 0..WRITERS {
            let config = if has_bus { bus::writer(ports, number, &sinks) } else { writer_config(&sinks) };
            let name = format!("writer-{}", number + 1);
            started.push(self.start(state, binary, ProcessRole::Writer, name, ports.writer(number), &config)?);
        }
        let writers: Vec<SocketAddr> = (0..WRITERS).map(|number| ports.writer(number).0).collect();
        let config = if has_bus { bus::gateway(ports, &sinks)? } else { gateway_config(&writers, &sinks)? };
        for number in 0..GATEWAYS {
            let name = format!("gateway-{}", number + 1);
            started.push(self.start(state, binary, ProcessRole::Gateway, name, ports.gateway(number), &config)?);
        }
        for mut one in started {
            one.wait_ready()?;
        }
        self.start_proxy(state, ports)?.wait_ready()?;
        if has_bus { bus::wait_ready(ports) } else { Ok(()) }
    }

    /// Starts NATS, etcd and the services. The services give up if they find no NATS, everything else tries again.
    fn start_bus(&self, state: &mut State, ports: Ports) -> Result<()> {
        for (name, command, address) in bus::servers(ports, &self.folder)? {
            self.spawn(state, command, name.into(), Kind::Bus, address, None)?;
        }
        until("NATS accepts connections", READY_LIMIT, || Ok(bus::is_open(ports.nats())))?;
        for (name, command) in bus::workers(ports)? {
            self.spawn(state, command, name.into(), Kind::Bus, ports.nats(), None)?;
        }
        Ok(())
    }

    /// Starts a process of the server; it isn't ready yet.
    fn start(
        &self,
        state: &mut State,
        binary: &Path,
        role: ProcessRole,
        name: String,
        (intake, admin): (SocketAddr, SocketAddr),
        config: &str,
    ) -> Result<Started> {
        let folder = self.folder.join(&name);
        workspace::empty_directory(&folder)?;
        let mut launch = Launch::of_role(role, binary, &folder, Some(config))?;
        (launch.intake, launch.admin) = (intake, admin);
        let kind = if role == ProcessRole::Writer { Kind::Writer } else { Kind::Gateway };
        self.spawn(state, launch.command(), name, kind, intake, Some(admin))
    }

    fn start_proxy(&self, state: &mut State, ports: Ports) -> Result<Started> {
        let config = self.folder.join("haproxy.cfg");
        std::fs::write(&config, ports.proxy_config()).with_context(|| format!("writing {}", config.display()))?;
        let mut command = Command::new("haproxy");
        command.args(["-db", "-f"]).arg(config);
        self.spawn(state, command, "haproxy".into(), Kind::Proxy, ports.front(), None)
    }

    /// Starts a process that outlives this one, with its log in the lab's folder.
    fn spawn(
        &self,
        state: &mut State,
        mut command: Command,
        name: String,
        kind: Kind,
        address: SocketAddr,
        admin: Option<SocketAddr>,
    ) -> Result<Started> {
        let log = self.folder.join(format!("{name}.log"));
        let file = File::create(&log).with_context(|| format!("making {}", log.display()))?;
        // A Ctrl-C for this command is none for the lab.
        command.process_group(0).stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        let child = command.spawn().with_context(|| format!("starting {name}"))?;
        self.record(state, Member::new(name.clone(), kind, child.id(), admin)?)?;
        Ok(Started { child, name, address, log })
    }

    /// Records each process immediately: `down` must find it even if `up` is interrupted.
    fn record(&self, state: &mut State, member: Member) -> Result<()> {
        state.members.push(member);
        state.write(&self.folder)
    }

    fn down(&self) -> Result<()> {
        let state = State::read(&self.folder)?;
        if state.members.is_empty() {
            println!("no lab is up");
            return Ok(());
        }
        state.end_all()?;
        std::fs::remove_dir_all(&self.folder).with_context(|| format!("removing {}", self.folder.display()))
    }

    fn status(&self) -> Result<()> {
        let state = State::read(&self.folder)?;
        if state.members.is_empty() {
            println!("no lab is up: `cargo xtask lab up` starts one");
        }
        state.members.iter().for_each(|member| println!("{}", member.line()));
        if let Some(psql) = state.psql() {
            println!("{psql}");
        }
        Ok(())
    }

    /// Posts an event at the front, and waits until PostgreSQL has it.
    fn check(&self, ports: Ports) -> Result<()> {
        let request = http::post("/ingest/event", &["Content-Type: application/json"], b"{\"hello\":\"lab\"}");
        let answer = Connection::open(ports.front())?.send(&request)?;
        if answer.status != 200 {
            bail!("HAProxy answered {}: {}", answer.status, String::from_utf8_lossy(&answer.body));
        }
        let is_stored = || Ok(State::read(&self.folder)?.rows() == Some(1));
        until("the event is in PostgreSQL", READY_LIMIT, is_stored)?;
        self.status()
    }
}

/// A process that isn't ready yet.
struct Started {
    child: Child,
    name: String,
    address: SocketAddr,
    log: PathBuf,
}

impl Started {
    fn wait_ready(&mut self) -> Result<()> {
        let ready = until(&format!("{} is ready", self.name), READY_LIMIT, || match self.child.try_wait()? {
            Some(status) => bail!("{} ended before it was ready: {status}", self.name),
            None => Ok(http::is_ready(self.address)),
        });
        ready.with_context(|| tail(&self.log))
    }
}

fn refuse_used(address: SocketAddr) -> Result<()> {
    let free = TcpListener::bind(address).map(drop);
    free.with_context(|| format!("{address} is in use: end what listens there, or set another --port"))
}

/// A member's metrics; none if it doesn't answer.
fn figures(admin: SocketAddr, names: &[(&str, &str)]) -> Option<String> {
    let answer = http::get(admin, "/metrics").ok()?;
    let text = String::from_utf8(answer.body).ok()?;
    // An empty sum is -0.0.
    let shown = names.iter().map(|(name, shown)| format!("{} {shown}", metrics::sum(&text, name) + 0.0));
    Some(shown.collect::<Vec<_>>().join(", "))
}
