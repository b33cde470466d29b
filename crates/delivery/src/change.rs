//! Changes of a delivery that runs: another configuration, and routes that are given up.
//!
//! No lane runs while the book is changed; what the gateway takes meanwhile waits in the journal. Either everything is as
//! it is to be and saved, or everything is as it was before.

use std::io;
use std::sync::Arc;

use event::TypeName;
use tokio::sync::{mpsc, oneshot};

use crate::book::Book;
use crate::claims::{Accept, Dispute};
use crate::engine::Engine;
use crate::join::Start;
use crate::{LaneState, LaneStatus, Setup, SinkName};

/// Orders that wait for the delivery.
pub(crate) const ORDERS_MAX: usize = 4;

/// Why a delivery goes on as it was.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The events that wait for a route can't be counted.
    #[error("can't count the events in the journal: {0}")]
    Journal(#[source] io::Error),
    /// The states of aggregates can't be read or written.
    #[error("can't begin an aggregate: {0}")]
    Aggregates(#[source] io::Error),
    /// What has changed can't be saved.
    #[error("the ledger can't be saved; free space on the disk of the data directory")]
    Save,
    /// Nothing can be given up.
    #[error("{0}")]
    NothingHeld(String),
    /// It has ended.
    #[error("Forebay is stopping")]
    Stopping,
}

/// What was given up of a sink's routes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GivenUp {
    /// For each type how many of its events.
    pub routes: Vec<(TypeName, u64)>,
    /// Stopped lanes that go on behind what their store has lost.
    pub lanes: u64,
}

/// What a delivery is told while it runs.
pub(crate) enum Change {
    Configuration(Setup, oneshot::Sender<Result<(), ChangeError>>),
    GiveUp(SinkName, Option<TypeName>, oneshot::Sender<Result<GivenUp, ChangeError>>),
    Accept(SinkName, Accept, oneshot::Sender<Result<u64, ChangeError>>),
}

/// Changes a delivery that runs. Cheap to clone.
#[derive(Clone)]
pub struct DeliveryControl(pub(crate) mpsc::Sender<Change>);

impl DeliveryControl {
    /// Goes on with these routes, sinks and aggregates. The driver of a sink that stays as it is should be the one that it has. An
    /// aggregate that stays as it is goes on undisturbed.
    ///
    /// # Errors
    /// Nothing has changed.
    pub async fn configure(&self, setup: Setup) -> Result<(), ChangeError> {
        self.order(|reply| Change::Configuration(setup, reply)).await
    }

    /// Gives up the events that routes hold which were taken out of the configuration: those to this sink, from one type
    /// or from all. Lanes of the sink that have stopped because their store has lost what isn't in the journal any
    /// more go on behind that.
    ///
    /// # Errors
    /// Nothing was given up.
    pub async fn give_up(&self, sink: SinkName, only: Option<TypeName>) -> Result<GivenUp, ChangeError> {
        self.order(|reply| Change::GiveUp(sink, only, reply)).await
    }

    /// Permits stopped lanes of this sink, whose store and journal disagree, to accept what the store has and to go on. With `again` they
    /// send again all that the journal has behind their saved cursors. Says how many lanes that are.
    ///
    /// # Errors
    /// Nothing has changed.
    pub async fn accept(&self, sink: SinkName, again: bool) -> Result<u64, ChangeError> {
        self.order(|reply| Change::Accept(sink, Accept { again }, reply)).await
    }

    async fn order<T>(
        &self,
        change: impl FnOnce(oneshot::Sender<Result<T, ChangeError>>) -> Change,
    ) -> Result<T, ChangeError> {
        let (reply, answer) = oneshot::channel();
        self.0.send(change(reply)).await.map_err(|_| ChangeError::Stopping)?;
        answer.await.unwrap_or(Err(ChangeError::Stopping))
    }
}

impl Engine {
    pub(crate) async fn change(&mut self, change: Change) {
        self.lanes.end_now().await;
        // Whoever asked may have left: it is done all the same.
        match change {
            Change::Configuration(setup, reply) => {
                let changed = self.configure(setup).await;
                self.start_lanes();
                let _ = reply.send(changed);
            }
            Change::GiveUp(sink, only, reply) => {
                let given_up = self.give_up(&sink, only.as_ref());
                self.start_lanes();
                let _ = reply.send(given_up);
            }
            Change::Accept(sink, accept, reply) => {
                let accepted = self.accept(&sink, accept);
                self.start_lanes();
                let _ = reply.send(accepted);
            }
        }
    }

    async fn configure(&mut self, setup: Setup) -> Result<(), ChangeError> {
        // Before the end of their routes is known: behind it they have no results.
        self.crew.end_others(&setup.aggregates).await;
        if let Err(error) = self.go_over_to(&setup) {
            self.crew.resume();
            return Err(error);
        }
        self.close_all_but(&setup.sinks).await;
        self.adopt(setup.sinks);
        self.crew.adopt(setup.aggregates);
        Ok(())
    }

    fn go_over_to(&mut self, setup: &Setup) -> Result<(), ChangeError> {
        let before = self.ledger.copy();
        let start = Start::new(&self.log, (&self.home.disk, &self.home.data), &setup.routes, Some(before.clone()));
        let (book, _) = start.join(setup).map_err(ChangeError::Journal)?;
        self.crew.prepare(&setup.aggregates, Some(&before.routes)).map_err(ChangeError::Aggregates)?;
        self.save(book, before)
    }

    /// Where a route begins must be known to the next start, or it would begin later there.
    fn save(&mut self, book: Book, before: Book) -> Result<(), ChangeError> {
        self.ledger.replace(book);
        if self.keeper.save_both() {
            return Ok(());
        }
        self.ledger.replace(before);
        Err(ChangeError::Save)
    }

    fn give_up(&mut self, name: &SinkName, only: Option<&TypeName>) -> Result<GivenUp, ChangeError> {
        let before = self.ledger.copy();
        let mut book = before.clone();
        let Some(sink) = book.sinks.get_mut(name) else {
            return Err(ChangeError::NothingHeld(format!("no route to a sink {name} is known")));
        };
        let mut given_up = GivenUp { routes: sink.give_up(only), lanes: 0 };
        for status in self.board.lanes().iter().filter(|status| status.lane().sink == *name) {
            let lane = sink.lanes.get_mut(usize::from(status.lane().shard));
            if let Some(lane) = lane.filter(|lane| only.is_none() && lane.dispute == Some(Dispute::Lost))
                && matches!(status.state(), LaneState::Stopped(_))
            {
                lane.start = lane.cursor;
                given_up.lanes += 1;
            }
        }
        if given_up == GivenUp::default() {
            return Err(ChangeError::NothingHeld(nothing_held(name, only)));
        }
        self.save(book, before)?;
        for dead in self.dead.iter().filter(|dead| dead.sink() == name) {
            // If it fails, its lane does it before it sends any of them again.
            let _ = dead.release_given_up();
        }
        Ok(given_up)
    }

    fn accept(&mut self, name: &SinkName, accept: Accept) -> Result<u64, ChangeError> {
        let before = self.ledger.copy();
        let mut book = before.clone();
        let refused = self.refused_lanes(name);
        let mut count = 0;
        if let Some(sink) = book.sinks.get_mut(name) {
            for (shard, lane) in sink.lanes.iter_mut().enumerate() {
                if lane.dispute.is_some() || refused.contains(&shard) {
                    lane.accept = Some(accept);
                    count += 1;
                }
            }
            if !refused.is_empty() {
                sink.mark = None;
            }
        }
        if count == 0 {
            return Err(ChangeError::NothingHeld(format!(
                "no lane of a sink {name} has stopped because of what its store has: forebay route list shows what lanes do"
            )));
        }
        self.save(book, before)?;
        if !refused.is_empty() {
            self.sinks.iter().filter(|setup| setup.name == *name).for_each(|setup| setup.sink.bind(None));
        }
        Ok(count)
    }

    /// The shards of the lanes that wait for the store which their sink is bound to, while writers have another one.
    fn refused_lanes(&self, name: &SinkName) -> Vec<usize> {
        let Some(setup) = self.sinks.iter().find(|setup| setup.name == *name) else { return Vec::new() };
        let waits =
            |status: &&Arc<LaneStatus>| status.lane().sink == *name && matches!(status.state(), LaneState::Waiting(_));
        if !setup.sink.has_other_store() {
            return Vec::new();
        }
        self.board.lanes().iter().filter(waits).map(|status| usize::from(status.lane().shard)).collect()
    }
}

pub(crate) fn nothing_held(sink: &SinkName, only: Option<&TypeName>) -> String {
    let from = only.map(|name| format!(" from type {name}")).unwrap_or_default();
    format!(
        "no route{from} to sink {sink} holds events that could be given up: only one that was taken out of the \
         configuration does, or a lane that has stopped because its store has lost events. A lane that has stopped because of what \
         its store has goes on with: forebay route accept {sink}"
    )
}
