//! Two gateways, three writers and PostgreSQL: faults of writers and SIGKILLs of gateways while clients send, some of them the same key to
//! both gateways. Afterwards each acknowledged event is one row, a key that went through both gateways too, and the ledgers balance.

mod clients;
mod plan;

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::Signal;

use super::frame::{Frame, FrameOptions};
use super::kills::clients::Shared;
use super::kills::judge_rows;
use super::kills::oracle::Oracle;
use super::ledger;
use crate::clients::with_clients;
use crate::metrics;
use crate::server::{Launch, ProcessRole, Server};
use crate::slow_proxy::SlowProxy;
use crate::store::{CampaignStore, PostgresStore, StoreServer};
use crate::two_services::{SinkSpec, gateway_config, writer_config};
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
    /// Most seconds until everything is stored after the last fault.
    #[arg(long, default_value_t = 15)]
    drained: u64,
    #[command(flatten)]
    frame: FrameOptions,
}

const WRITERS: usize = 3;
const GATEWAYS: usize = 2;
/// Lanes of each gateway: so many that chance leaves no writer without any.
const SHARDS: u32 = 12;
const NAME: &str = "warehouse";

/// A few faults with the server that the tests were built with. How soon it is drained is measured but not judged: a test doesn't
/// depend on the machine's speed.
pub(crate) fn short() -> Result<()> {
    let Some(store) = PostgresStore::start_or_skip()? else { return Ok(()) };
    let drained = Duration::from_mins(2).as_secs();
    let frame = FrameOptions::short();
    break_again_and_again(store, &Options { faults: 4, gateway_kills: 1, connections: 16, drained, frame })
}

pub(crate) fn run(options: &Options) -> Result<()> {
    break_again_and_again(PostgresStore::require()?, options)
}

fn break_again_and_again(mut store: PostgresStore, options: &Options) -> Result<()> {
    let Options { faults, gateway_kills, connections, .. } = *options;
    let frame = options.frame.begin(format!(
        "two services: {faults} faults, {gateway_kills} kills of gateways, {connections} connections"
    ))?;
    let plan = Plan::new(frame.seed, faults, gateway_kills)?;
    let mut site = Site::start(&frame, &store.sink())?;
    let shared = site.intakes().map(|gateway| Shared::new(gateway, frame.seed));
    shared.iter().for_each(Shared::server_is_up);
    let client = |number| clients::run(&shared, number, frame.seed);
    let stop = || shared.iter().for_each(Shared::stop);
    let act = || {
        site.follow(&plan, &shared)?;
        stop();
        site.drain()
    };
    let (known, drained) = with_clients(connections, client, act, stop)?;
    site.stop()?;
    judge_rows(store.payloads(&frame.folder)?, Oracle::new(frame.seed, known), &frame.folder)?;
    if drained > Duration::from_secs(options.drained) {
        bail!("everything was stored {drained:?} after the last fault, at most {} s are allowed", options.drained);
    }
    frame.end()
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
    fn start(frame: &Frame, role: ProcessRole, number: usize, config: &str) -> Result<Self> {
        let folder = frame.folder.join(format!("{}-{number}", role.subcommand()));
        let launch = Launch::fresh(role, &frame.binary, &folder, config)?;
        Ok(Self { server: Some(launch.ready()?), launch })
    }

    fn server(&self) -> Result<&Server> {
        self.server.as_ref().with_context(|| format!("{} isn't running", self.launch.intake))
    }

    fn take(&mut self) -> Result<Server> {
        self.server.take().with_context(|| format!("{} isn't running", self.launch.intake))
    }

    fn start_again(&mut self) -> Result<()> {
        self.server = Some(self.launch.ready()?);
        Ok(())
    }
}

impl Site {
    fn start(frame: &Frame, settings: &str) -> Result<Self> {
        let sink = SinkSpec { name: NAME, settings };
        let config = writer_config(&[sink]);
        let writers = (0..WRITERS).map(|number| Seat::start(frame, ProcessRole::Writer, number, &config));
        let writers: Vec<Seat> = writers.collect::<Result<_>>()?;
        let mut proxies: Vec<_> = writers.iter().map(|writer| SlowProxy::before(writer.launch.intake)).collect();
        proxies.iter_mut().try_for_each(SlowProxy::open)?;
        let addresses: Vec<_> = proxies.iter().map(SlowProxy::address).collect();
        let config = format!("[gateway]\nshards = {SHARDS}\n\n{}", gateway_config(&addresses, &[sink])?);
        let gateways = (0..GATEWAYS).map(|number| Seat::start(frame, ProcessRole::Gateway, number, &config));
        Ok(Self { gateways: gateways.collect::<Result<_>>()?, writers, proxies, batches: [0.0; WRITERS] })
    }

    fn intakes(&self) -> [SocketAddr; GATEWAYS] {
        std::array::from_fn(|number| self.gateways[number].launch.intake)
    }

    /// Executes the plan, when its steps are due.
    fn follow(&mut self, plan: &Plan, shared: &[Shared; GATEWAYS]) -> Result<()> {
        let begun = Instant::now();
        for step in plan.steps() {
            thread::sleep(step.at.saturating_sub(begun.elapsed()));
            println!("{:>6.1} s: {}", begun.elapsed().as_secs_f64(), step.action);
            self.act(step.action, shared).with_context(|| step.action.to_string())?;
        }
        Ok(())
    }

    fn act(&mut self, action: Action, shared: &[Shared; GATEWAYS]) -> Result<()> {
        match action {
            Action::KillGateway(number) => {
                shared[number].server_goes_down();
                self.gateways[number].take()?.kill()
            }
            Action::StartGateway(number) => {
                self.gateways[number].start_again()?;
                shared[number].server_is_up();
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

    /// Waits until nothing is pending after the load. Says how long that took.
    fn drain(&mut self) -> Result<Duration> {
        let begun = Instant::now();
        for gateway in &self.gateways {
            gateway.server()?.wait_stored()?;
        }
        let took = begun.elapsed();
        println!("everything is stored {:.1} s after the last fault", took.as_secs_f64());
        for (number, gateway) in self.gateways.iter().enumerate() {
            let accepted = ledger::accepted(gateway.server()?)?;
            ledger::expect_stored(gateway.server()?, accepted, 1).with_context(|| format!("gateway {number}"))?;
            println!("gateway {number}: {accepted} events accepted, all stored");
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
