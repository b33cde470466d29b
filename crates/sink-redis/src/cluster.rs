//! A cluster: its slots and their nodes, shared by all lanes of a sink, and a lane's connections to the nodes.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::sleep;

use super::address::Address;
use super::config::RedisConfig;
use super::connecting;
use super::error::Failure;
use super::execute::Execute;
use super::protocol::{Answer, Command};
use super::session::Session;
use super::slots::{Redirect, Slots, slot};

/// How long a node may take to return the slots: a dead node must not delay the others' response for long.
const SLOTS_TIMEOUT: Duration = Duration::from_secs(3);
/// How many nodes a command is sent to at most; how often it is retried while a slot is moving.
const TRIES_MAX: usize = 24;
/// After this many there is a pause before each: a slot is moving.
const TRIES_WITHOUT_PAUSE: usize = 3;
const PAUSE: Duration = Duration::from_millis(50);

/// The known state of the cluster.
#[derive(Debug, Default)]
pub(super) struct Map {
    known: Mutex<Known>,
    /// The node that is asked first. It rotates, since a node may be outdated.
    next_node: AtomicUsize,
}

#[derive(Debug, Default)]
struct Known {
    slots: Arc<Slots>,
    /// Whether the slots must be read again.
    is_stale: bool,
    /// Nodes that have passed the checks.
    fit: BTreeSet<Address>,
    /// What the server, or a node, may lose although it has confirmed the write.
    warning: Option<String>,
}

impl Map {
    fn held(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the most recently connected server, or one of the nodes, may lose.
    pub(super) fn warning(&self) -> Option<String> {
        self.held().warning.clone()
    }

    pub(super) fn set_warning(&self, warning: Option<String>) {
        self.held().warning = warning;
    }

    /// A node has failed or rejected a command: the known state may be outdated.
    fn invalidate(&self) {
        let mut known = self.held();
        known.is_stale = true;
        known.fit.clear();
    }

    /// Checks the reachable nodes, each once unless it fails. A node that fails the checks is a failure.
    pub(super) async fn connect(&self, config: &RedisConfig) -> Result<(), Failure> {
        let slots = self.slots(config).await?;
        for owner in slots.owners() {
            if !self.held().fit.contains(owner) {
                match self.open(config, owner).await {
                    // Lanes without keys on the node don't wait for it.
                    Ok(_) | Err(Failure::Connection(_) | Failure::NoResponse(_) | Failure::NotReady(_)) => {}
                    Err(failure) => return Err(failure.at(owner)),
                }
            }
        }
        Ok(())
    }

    async fn slots(&self, config: &RedisConfig) -> Result<Arc<Slots>, Failure> {
        let (slots, is_stale) = {
            let known = self.held();
            (known.slots.clone(), known.is_stale)
        };
        if !is_stale && !slots.owners().is_empty() {
            return Ok(slots);
        }
        let named = std::iter::once(&config.server.address).chain(config.deployment.more_nodes());
        let mut nodes: Vec<&Address> = slots.owners().into_iter().chain(named).collect();
        let next_node = self.next_node.fetch_add(1, Ordering::Relaxed) % nodes.len().max(1);
        nodes.rotate_left(next_node);
        let mut failures = Vec::new();
        for node in nodes {
            match read_slots(config, node).await {
                Ok(slots) => {
                    let slots = Arc::new(slots);
                    let mut known = self.held();
                    (known.slots, known.is_stale) = (slots.clone(), false);
                    return Ok(slots);
                }
                Err(failure @ (Failure::Server(_) | Failure::Misfit(_))) => return Err(failure.at(node)),
                Err(failure) => failures.push(format!("{node}: {failure}")),
            }
        }
        Err(Failure::NotReady(format!("no node returned the cluster's slots ({})", failures.join("; "))))
    }

    /// Connects to a node, and checks it.
    async fn open(&self, config: &RedisConfig, node: &Address) -> Result<Session, Failure> {
        let (session, warning) = connecting::open_at(config, node).await?;
        let mut known = self.held();
        known.fit.insert(node.clone());
        known.warning = warning.or_else(|| known.warning.take());
        Ok(session)
    }
}

/// Reads the slots from one node.
async fn read_slots(config: &RedisConfig, node: &Address) -> Result<Slots, Failure> {
    let limit = SLOTS_TIMEOUT.min(config.timeout);
    let mut session = Session::open(node, &config.server, config.ca.as_deref(), limit).await?;
    let answer = session.call(Command::new(&["CLUSTER", "SLOTS"])).await?;
    let slots = Slots::of(&answer, node)
        .ok_or(Failure::Unexpected("the node returned invalid slots: run redis-cli --cluster check"))?;
    if slots.owners().is_empty() {
        return Err(Failure::NotReady("no node has any slots: run redis-cli --cluster check".to_owned()));
    }
    Ok(slots)
}

/// A lane's connections to the nodes.
pub(super) struct Nodes<'a> {
    pub(super) config: &'a RedisConfig,
    pub(super) map: &'a Map,
    pub(super) sessions: &'a mut HashMap<Address, Session>,
}

impl Execute for Nodes<'_> {
    async fn execute(&mut self, key: &str, command: Command) -> Result<Answer, Failure> {
        let (slot, command) = (slot(key), command.into_bytes());
        let (mut node, mut is_early) = (self.owner(slot).await?, false);
        for tries in 1..=TRIES_MAX {
            if tries > TRIES_WITHOUT_PAUSE {
                sleep(PAUSE).await;
            }
            let said = match self.call(&node, is_early, &command).await {
                Ok(answer) => return Ok(answer),
                Err(Failure::Server(said)) => said,
                Err(failure) => {
                    self.map.invalidate();
                    return Err(failure.at(&node));
                }
            };
            (node, is_early) = match Redirect::of(&said, &node) {
                Some(Redirect::Moved(owner)) => {
                    self.map.invalidate();
                    (owner, false)
                }
                Some(Redirect::Ask(next)) => (next, true),
                Some(Redirect::TryAgain) => (self.owner(slot).await?, false),
                None => {
                    self.map.invalidate();
                    return Err(Failure::Server(said));
                }
            };
        }
        self.map.invalidate();
        Err(Failure::NotReady(format!("slot {slot} with {key} is moving to another node. Forebay retries")))
    }
}

impl Nodes<'_> {
    async fn owner(&self, slot: u16) -> Result<Address, Failure> {
        let slots = self.map.slots(self.config).await?;
        let no_owner = || {
            self.map.invalidate();
            Failure::NotReady(format!("no node serves slot {slot}: run redis-cli --cluster check"))
        };
        slots.owner(slot).cloned().ok_or_else(no_owner)
    }

    async fn fresh(&mut self, node: &Address) -> Option<Session> {
        let mut session = self.sessions.remove(node)?;
        session.check_fresh().await.then_some(session)
    }

    /// `is_early` if the slot isn't the node's yet.
    async fn call(&mut self, node: &Address, is_early: bool, command: &[u8]) -> Result<Answer, Failure> {
        // Removed during the call: a call that fails or is dropped leaves no connection in an unknown state.
        let mut session = match self.fresh(node).await {
            Some(session) => session,
            None => self.map.open(self.config, node).await?,
        };
        if is_early {
            session.call(Command::new(&["ASKING"])).await?;
        }
        let answer = session.send(command).await;
        if matches!(answer, Ok(_) | Err(Failure::Server(_))) {
            self.sessions.insert(node.clone(), session);
        }
        answer
    }
}
