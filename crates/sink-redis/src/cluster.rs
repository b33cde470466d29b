//! A cluster: who has which slots, as all lanes of a sink know it, and a lane's connections to the nodes.

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

/// How long a node may take to say who has which slots: one that is dead shall not keep the others' answer waiting for long.
const LOOK_TIMEOUT: Duration = Duration::from_secs(3);
/// How many nodes a command is taken to at most; while a slot is on its way, how often it is tried.
const TRIES_MAX: usize = 24;
/// Beyond so many there is a pause before each: something is on its way.
const TRIES_AT_ONCE: usize = 3;
const PAUSE: Duration = Duration::from_millis(50);

/// What is known of the cluster.
#[derive(Debug, Default)]
pub(super) struct Map {
    known: Mutex<Known>,
    /// Which of the nodes is asked first: each in its turn, since one may be behind.
    turn: AtomicUsize,
}

#[derive(Debug, Default)]
struct Known {
    slots: Arc<Slots>,
    /// It is to be asked again who has which slots.
    is_stale: bool,
    /// Nodes that were found fit to be written to.
    fit: BTreeSet<Address>,
    /// What the server, or a node, may lose although it has answered.
    warning: Option<String>,
}

impl Map {
    fn held(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the server that was connected to last, or one of the nodes, may lose.
    pub(super) fn warning(&self) -> Option<String> {
        self.held().warning.clone()
    }

    pub(super) fn set_warning(&self, warning: Option<String>) {
        self.held().warning = warning;
    }

    /// A node has failed or refused something: all that is known may be out of date.
    fn doubt(&self) {
        let mut known = self.held();
        known.is_stale = true;
        known.fit.clear();
    }

    /// Looks at the nodes that can be reached, each once as long as nothing fails. One that isn't fit to be written to is a failure.
    pub(super) async fn connect(&self, config: &RedisConfig) -> Result<(), Failure> {
        let slots = self.slots(config).await?;
        for owner in slots.owners() {
            if !self.held().fit.contains(owner) {
                match self.open(config, owner).await {
                    // Who has nothing there isn't kept waiting by it.
                    Ok(_) | Err(Failure::Connection(_) | Failure::Silent(_) | Failure::NotReady(_)) => {}
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
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % nodes.len().max(1);
        nodes.rotate_left(turn);
        let mut failures = Vec::new();
        for node in nodes {
            match look(config, node).await {
                Ok(slots) => {
                    let slots = Arc::new(slots);
                    let mut known = self.held();
                    (known.slots, known.is_stale) = (slots.clone(), false);
                    return Ok(slots);
                }
                Err(failure @ (Failure::Server(_) | Failure::Unfit(_))) => return Err(failure.at(node)),
                Err(failure) => failures.push(format!("{node}: {failure}")),
            }
        }
        Err(Failure::NotReady(format!("no node says who has which slots ({})", failures.join("; "))))
    }

    /// Connects to a node, and looks at it.
    async fn open(&self, config: &RedisConfig, node: &Address) -> Result<Session, Failure> {
        let (session, warning) = connecting::open_at(config, node).await?;
        let mut known = self.held();
        known.fit.insert(node.clone());
        known.warning = warning.or_else(|| known.warning.take());
        Ok(session)
    }
}

/// Asks one node who has which slots.
async fn look(config: &RedisConfig, node: &Address) -> Result<Slots, Failure> {
    let limit = LOOK_TIMEOUT.min(config.timeout);
    let mut session = Session::open(node, &config.server, config.ca.as_deref(), limit).await?;
    let answer = session.call(Command::new(&["CLUSTER", "SLOTS"])).await?;
    let slots = Slots::of(&answer, node).ok_or(Failure::Odd("it didn't say who has which slots"))?;
    if slots.owners().is_empty() {
        return Err(Failure::NotReady("nobody has any slots there".to_owned()));
    }
    Ok(slots)
}

/// A lane's way to the nodes.
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
            if tries > TRIES_AT_ONCE {
                sleep(PAUSE).await;
            }
            let said = match self.call(&node, is_early, &command).await {
                Ok(answer) => return Ok(answer),
                Err(Failure::Server(said)) => said,
                Err(failure) => {
                    self.map.doubt();
                    return Err(failure.at(&node));
                }
            };
            (node, is_early) = match Redirect::of(&said, &node) {
                Some(Redirect::Moved(owner)) => {
                    self.map.doubt();
                    (owner, false)
                }
                Some(Redirect::Ask(next)) => (next, true),
                Some(Redirect::TryAgain) => (self.owner(slot).await?, false),
                None => {
                    self.map.doubt();
                    return Err(Failure::Server(said));
                }
            };
        }
        self.map.doubt();
        Err(Failure::NotReady(format!(
            "slot {slot} is on its way to another node, and {key} with it: it is tried again"
        )))
    }
}

impl Nodes<'_> {
    async fn owner(&self, slot: u16) -> Result<Address, Failure> {
        let slots = self.map.slots(self.config).await?;
        let nobody = || {
            self.map.doubt();
            Failure::NotReady(format!("nobody serves slot {slot}: look at redis-cli --cluster check"))
        };
        slots.owner(slot).cloned().ok_or_else(nobody)
    }

    async fn fresh(&mut self, node: &Address) -> Option<Session> {
        let mut session = self.sessions.remove(node)?;
        session.check_fresh().await.then_some(session)
    }

    /// `is_early` where the slot isn't the node's yet.
    async fn call(&mut self, node: &Address, is_early: bool, command: &[u8]) -> Result<Answer, Failure> {
        // Taken out: a call that fails or is dropped on the way leaves no connection in an unknown state.
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
