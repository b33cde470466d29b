//! Two gateways, three writers and PostgreSQL: faults of writers and SIGKILLs of gateways while clients send, some of them the same key to
//! both gateways. Afterwards each acknowledged event is one row, a key that went through both gateways too, and the ledgers balance.

mod clients;
mod plan;

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::Signal;

use super::any_seed;
use super::batches::Ledger;
use super::kills::judge_rows;
use super::kills::oracle::Oracle;
use crate::metrics;
use crate::server::{Launch, ProcessRole, Server};
use crate::slow_proxy::SlowProxy;
use crate::store::{CampaignStore, PostgresStore};
use crate::two_services::{SinkSpec, gateway_config, ready, writer_config};
use crate::workspace;
use clients::Clients;
use plan::{Action, Fault, Plan};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Faults of writers: SIGKILL, SIGTERM, SIGSTOP for 5 s, answers ten times as late, each as often.
    #[arg(long, default_value_t = 40)]
    faults: u32,
    /// SIGKILLs of gateways.
    #[arg(long, default_value_t = 4)]
    gateway_kills: u32,
    /// Clients, each with one request at a time.
    #[arg(long, default_value_t = 32)]
    connections: u32,
    /// Most seconds until everything is stored behind the last fault.
    #[arg(long, default_value_t = 15)]
    drained: u64,
    /// Repeats a run: the same events, and the same plan of faults.
    #[arg(long)]
    seed: Option<u64>,
    /// A server for both roles; without it the workspace's own is built.
    #[arg(long)]
    binary: Option<PathBuf>,
}

const WRITERS: usize = 3;
const GATEWAYS: usize = 2;
/// Lanes of each gateway: so many that chance leaves no writer without any.
const SHARDS: u32 = 12;
const NAME: &str = "warehouse";

/// A few faults with the server that the tests were built with. How soon it is drained is measured but not judged: a test doesn't
/// depend on the machine's speed.
pub(crate) fn short() -> Result<()> {
    let Some(store) = PostgresStore::start()? else {
        workspace::skipped("PostgreSQL is missing, which `cargo xtask services` installs")?;
        return Ok(());
    };
    let binary = Some(workspace::tested_binary(None)?);
    let drained = Duration::from_mins(2).as_secs();
    break_again_and_again(
        store,
        &Options { faults: 4, gateway_kills: 1, connections: 16, drained, seed: Some(1), binary },
    )
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let store = PostgresStore::start()?.context("PostgreSQL is missing: `cargo xtask services` installs it")?;
    break_again_and_again(store, options)
}

fn break_again_and_again(mut store: PostgresStore, options: &Options) -> Result<()> {
    let seed = options.seed.unwrap_or_else(any_seed);
    let Options { faults, gateway_kills, connections, .. } = *options;
    println!(
        "two services: {faults} faults, {gateway_kills} kills of gateways, {connections} connections, --seed {seed}"
    );
    let binary = workspace::tested_binary(options.binary.as_deref())?;
    let folder = workspace::scratch_directory("campaign")?;
    let mut site = Site::start(&binary, &folder, &store.sink())?;
    let clients = Clients::start(site.intakes(), connections, seed)?;
    let done = Plan::new(seed, faults, gateway_kills).and_then(|plan| site.follow(&plan, &clients));
    let drained = done.and_then(|()| site.drain(&clients));
    let known = clients.finish();
    let drained = drained?;
    site.stop()?;
    store.read_payloads(&folder, |payloads| judge_rows(payloads, Oracle::new(seed, known?), &folder))?;
    if drained > Duration::from_secs(options.drained) {
        bail!("everything was stored {drained:?} after the last fault, at most {} s are allowed", options.drained);
    }
    std::fs::remove_dir_all(&folder).context("removing what the campaign left")
}

/// A process that is started again and again.
struct Seat {
    launch: Launch,
    server: Option<Server>,
}

/// All processes but the store.
struct Site {
    gateways: Vec<Seat>,
    writers: Vec<Seat>,
    proxies: Vec<SlowProxy>,
    /// Batches that writers took in lives that have ended.
    batches: [f64; WRITERS],
}

impl Seat {
    fn start(role: ProcessRole, number: usize, binary: &Path, folder: &Path, config: &str) -> Result<Self> {
        let folder = folder.join(format!("{}-{number}", role.subcommand()));
        workspace::empty_directory(&folder)?;
        let launch = Launch::of_role(role, binary, &folder, Some(config))?;
        let server = Some(ready(&launch)?);
        Ok(Self { launch, server })
    }

    fn server(&self) -> Result<&Server> {
        self.server.as_ref().with_context(|| format!("{} isn't running", self.launch.intake))
    }

    fn take(&mut self) -> Result<Server> {
        self.server.take().with_context(|| format!("{} isn't running", self.launch.intake))
    }

    fn start_again(&mut self) -> Result<()> {
        self.server = Some(ready(&self.launch)?);
        Ok(())
    }
}

impl Site {
    fn start(binary: &Path, folder: &Path, settings: &str) -> Result<Self> {
        let sink = SinkSpec { name: NAME, settings };
        let config = writer_config(&[sink]);
        let writers: Result<Vec<_>> =
            (0..WRITERS).map(|number| Seat::start(ProcessRole::Writer, number, binary, folder, &config)).collect();
        let writers = writers?;
        let mut proxies: Vec<_> = writers.iter().map(|writer| SlowProxy::before(writer.launch.intake)).collect();
        proxies.iter_mut().try_for_each(SlowProxy::open)?;
        let addresses: Vec<_> = proxies.iter().map(SlowProxy::address).collect();
        let config = format!("[gateway]\nshards = {SHARDS}\n\n{}", gateway_config(&addresses, &[sink])?);
        let gateways = (0..GATEWAYS).map(|number| Seat::start(ProcessRole::Gateway, number, binary, folder, &config));
        Ok(Self { gateways: gateways.collect::<Result<_>>()?, writers, proxies, batches: [0.0; WRITERS] })
    }

    fn intakes(&self) -> [std::net::SocketAddr; GATEWAYS] {
        std::array::from_fn(|number| self.gateways[number].launch.intake)
    }

    /// Does what is planned, when it is due.
    fn follow(&mut self, plan: &Plan, clients: &Clients) -> Result<()> {
        let begun = Instant::now();
        for step in plan.steps() {
            thread::sleep(step.at.saturating_sub(begun.elapsed()));
            println!("{:>6.1} s: {}", begun.elapsed().as_secs_f64(), step.action);
            self.act(step.action, clients).with_context(|| step.action.to_string())?;
        }
        Ok(())
    }

    fn act(&mut self, action: Action, clients: &Clients) -> Result<()> {
        match action {
            Action::KillGateway(number) => {
                clients.gateway_goes_down(number);
                self.gateways[number].take()?.kill()
            }
            Action::StartGateway(number) => {
                self.gateways[number].start_again()?;
                clients.gateway_is_up(number);
                Ok(())
            }
            Action::Begin(number, fault) => self.begin(number, fault),
            Action::End(number, fault) => self.end(number, fault),
        }
    }

    fn begin(&mut self, number: usize, fault: Fault) -> Result<()> {
        let (writer, proxy) = (&mut self.writers[number], &mut self.proxies[number]);
        match fault {
            Fault::Kill | Fault::Stop => {
                self.batches[number] += metrics::sum(&writer.server()?.metrics()?, "forebay_writer_batches_total");
                proxy.close()?;
                let server = writer.take()?;
                if fault == Fault::Kill { server.kill() } else { server.stop() }
            }
            Fault::Freeze => writer.server()?.signal(Signal::STOP),
            Fault::Delay => {
                proxy.set_slow(true);
                Ok(())
            }
        }
    }

    fn end(&mut self, number: usize, fault: Fault) -> Result<()> {
        let (writer, proxy) = (&mut self.writers[number], &mut self.proxies[number]);
        match fault {
            Fault::Kill | Fault::Stop => {
                writer.start_again()?;
                proxy.open()
            }
            Fault::Freeze => writer.server()?.signal(Signal::CONT),
            Fault::Delay => {
                proxy.set_slow(false);
                Ok(())
            }
        }
    }

    /// Ends the load, and waits until nothing is pending. Says how long that took.
    fn drain(&mut self, clients: &Clients) -> Result<Duration> {
        let begun = Instant::now();
        clients.stop();
        for gateway in &self.gateways {
            gateway.server()?.wait_stored()?;
        }
        let took = begun.elapsed();
        println!("everything is stored {:.1} s after the last fault", took.as_secs_f64());
        for (number, gateway) in self.gateways.iter().enumerate() {
            let ledger = Ledger::read(gateway.server()?)?;
            println!("gateway {number}: {ledger:?}");
            ledger.check().with_context(|| format!("gateway {number}"))?;
        }
        for (number, writer) in self.writers.iter().enumerate() {
            let batches = metrics::sum(&writer.server()?.metrics()?, "forebay_writer_batches_total");
            let batches = self.batches[number] + batches;
            println!("writer {number}: {batches} batches");
            if batches <= 0.0 {
                bail!("writer {number} was never used: its faults showed nothing. Use another seed");
            }
        }
        Ok(took)
    }

    fn stop(mut self) -> Result<()> {
        for seat in self.gateways.iter_mut().chain(&mut self.writers) {
            seat.take()?.stop()?;
        }
        Ok(())
    }
}
