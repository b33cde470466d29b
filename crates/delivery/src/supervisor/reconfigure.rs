//! Changes of a running delivery: another configuration, and discarded routes.
//!
//! No lane runs while the ledger is changed; events that the gateway accepts during this time wait in the journal. Either the change
//! is complete and saved, or nothing has changed.

use std::sync::Arc;

use dead_letters::deferred_events;
use event::TypeName;
use ledger::{Accept, Discarded, Dispute, LedgerState, Reconciler, SinkName, nothing_to_discard};
use text::OperatorCommand;

use crate::command::{Change, ChangeError};
use crate::setup::Setup;
use crate::status::{LaneState, LaneStatus};
use crate::supervisor::Supervisor;

impl Supervisor {
    pub(crate) async fn change(&mut self, change: Change) {
        // The caller may have gone; the work is done anyway.
        match change {
            Change::PlanDiscard(sink, only, reply) => {
                let _ = reply.send(self.discarded(&sink, only.as_ref(), None).map(|(_, discarded)| discarded));
            }
            Change::PlanAccept(sink, reply) => {
                let _ = reply.send(self.accepted(&sink, Accept { resend: false }, None).map(|(_, lanes)| lanes));
            }
            Change::Configuration(setup, reply) => {
                self.lanes.end_now().await;
                let changed = self.configure(setup).await;
                self.start_lanes();
                let _ = reply.send(changed);
            }
            Change::Discard(sink, only, expected, reply) => {
                self.lanes.end_now().await;
                let discarded = self.discard(&sink, only.as_ref(), expected);
                self.start_lanes();
                let _ = reply.send(discarded);
            }
            Change::Accept(sink, accept, expected, reply) => {
                self.lanes.end_now().await;
                let accepted = self.accept(&sink, accept, expected);
                self.start_lanes();
                let _ = reply.send(accepted);
            }
        }
    }

    async fn configure(&mut self, setup: Setup) -> Result<(), ChangeError> {
        // Before the end of their routes is known: after it they have no results.
        self.aggregates.end_others(&setup.aggregates).await;
        if let Err(error) = self.switch_to(&setup) {
            self.aggregates.resume();
            return Err(error);
        }
        self.close_all_but(&setup.sinks).await;
        self.adopt(setup.sinks);
        self.aggregates.adopt(setup.aggregates);
        Ok(())
    }

    fn switch_to(&mut self, setup: &Setup) -> Result<(), ChangeError> {
        let before = self.ledger.copy();
        let deferred = |sink: &SinkName| deferred_events(&self.files.disk, &self.files.data, sink);
        let reconciler = Reconciler::new(&self.log, &deferred, &setup.routes, Some(before.clone()));
        let (state, _) = reconciler.reconcile(&setup.configuration()).map_err(ChangeError::Journal)?;
        let was_routed = |name: &TypeName| before.routes.has_entry(name);
        self.aggregates.prepare(&setup.aggregates, Some(was_routed)).map_err(ChangeError::Aggregates)?;
        self.save(state, before)
    }

    /// Where a route begins must be known to the next start, or it would begin later there.
    fn save(&mut self, state: LedgerState, before: LedgerState) -> Result<(), ChangeError> {
        self.ledger.replace(state);
        if self.checkpointer.save_both() {
            return Ok(());
        }
        self.ledger.replace(before);
        Err(ChangeError::Save)
    }

    fn discard(
        &mut self,
        name: &SinkName,
        only: Option<&TypeName>,
        expected: Option<u64>,
    ) -> Result<Discarded, ChangeError> {
        let before = self.ledger.copy();
        let (state, discarded) = self.discarded(name, only, expected)?;
        self.save(state, before)?;
        for dead in self.dead.iter().filter(|dead| dead.sink() == name) {
            // If it fails, its lane does it before it sends any of them again.
            let _ = dead.release_discarded();
        }
        Ok(discarded)
    }

    /// The ledger after a discard, and what that discards.
    fn discarded(
        &self,
        name: &SinkName,
        only: Option<&TypeName>,
        expected: Option<u64>,
    ) -> Result<(LedgerState, Discarded), ChangeError> {
        let mut state = self.ledger.copy();
        let Some(sink) = state.sinks.get_mut(name) else {
            return Err(ChangeError::NothingToDo(format!(
                "no route to sink {name} is known: {} shows all routes",
                OperatorCommand::RouteList
            )));
        };
        let mut discarded = Discarded { routes: sink.discard(only), lanes: 0 };
        for status in self.board.lanes().iter().filter(|status| status.lane().sink == *name) {
            let lane = sink.lanes.get_mut(usize::from(status.lane().shard));
            if let Some(lane) = lane.filter(|lane| only.is_none() && lane.dispute == Some(Dispute::Lost))
                && matches!(status.state(), LaneState::Stopped(_))
            {
                lane.start = lane.cursor;
                discarded.lanes += 1;
            }
        }
        if discarded == Discarded::default() {
            return Err(ChangeError::NothingToDo(nothing_to_discard(name, only)));
        }
        check(discarded.routes.iter().map(|(_, events)| events).sum(), expected)?;
        Ok((state, discarded))
    }

    fn accept(&mut self, name: &SinkName, accept: Accept, expected: Option<u64>) -> Result<u64, ChangeError> {
        let before = self.ledger.copy();
        let (state, count) = self.accepted(name, accept, expected)?;
        self.save(state, before)?;
        if !self.refused_lanes(name).is_empty() {
            self.sinks.iter().filter(|setup| setup.name == *name).for_each(|setup| setup.sink.bind(None));
        }
        Ok(count)
    }

    /// The ledger after an acceptance, and the number of lanes that resume.
    fn accepted(
        &self,
        name: &SinkName,
        accept: Accept,
        expected: Option<u64>,
    ) -> Result<(LedgerState, u64), ChangeError> {
        let mut state = self.ledger.copy();
        let refused = self.refused_lanes(name);
        let mut count = 0;
        if let Some(sink) = state.sinks.get_mut(name) {
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
            return Err(ChangeError::NothingToDo(format!(
                "nothing to accept: no lane of sink {name} has stopped because its store and the journal disagree. \
                 {} shows the state of each lane",
                OperatorCommand::RouteList
            )));
        }
        check(count, expected)?;
        Ok((state, count))
    }

    /// The shards of the lanes that wait for the store their sink is bound to, while writers have another one.
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

/// Whether a number is the expected one.
fn check(now: u64, expected: Option<u64>) -> Result<(), ChangeError> {
    match expected {
        Some(expected) if expected != now => Err(ChangeError::Changed { now, expected }),
        _ => Ok(()),
    }
}
