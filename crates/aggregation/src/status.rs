//! What aggregates show of themselves: for metrics and for people.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aggregate::{Fold, FoldCounts};
use event::TypeName;
use eventlog::EventLog;
use metrics::Counter;

/// How an aggregate stands at one moment.
#[derive(Clone, Debug, Default)]
pub struct AggregateFigures {
    /// What became of its events. Saved with its state: a crash changes nothing in them.
    pub counts: FoldCounts,
    /// Windows that may still change.
    pub windows: usize,
    /// Groups of all of them.
    pub groups: usize,
    /// Bytes of the groups, as they are counted against its budget.
    pub memory_bytes: usize,
    /// The budget: what these may be.
    pub memory_limit_bytes: usize,
    /// Up to when everything has come, late events apart: microseconds since 1970, UTC.
    pub watermark: Option<i64>,
    positions: Vec<u64>,
}

impl AggregateFigures {
    pub(crate) fn of(fold: &Fold) -> Self {
        Self {
            counts: fold.counts(),
            windows: fold.windows(),
            groups: fold.groups(),
            memory_bytes: fold.memory_bytes(),
            memory_limit_bytes: fold.rules().memory_bytes(),
            watermark: fold.watermark(),
            positions: fold.positions().map(|position| position.sequence).collect(),
        }
    }
}

/// One aggregate as seen from outside.
pub struct AggregateStatus {
    name: TypeName,
    log: Arc<EventLog>,
    figures: Mutex<AggregateFigures>,
    /// Times that its state was saved.
    pub saves: Counter,
    /// Times that it couldn't be saved.
    pub failed_saves: Counter,
    /// Events of all types that it couldn't read, since the start of the process.
    pub lost: Counter,
}

impl AggregateStatus {
    pub(crate) fn new(name: TypeName, log: Arc<EventLog>, figures: AggregateFigures) -> Self {
        let (saves, failed_saves, lost) = (Counter::new(), Counter::new(), Counter::new());
        Self { name, log, figures: Mutex::new(figures), saves, failed_saves, lost }
    }

    fn lock(&self) -> MutexGuard<'_, AggregateFigures> {
        self.figures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The type of its results.
    #[must_use]
    pub const fn name(&self) -> &TypeName {
        &self.name
    }

    /// How it stands.
    #[must_use]
    pub fn figures(&self) -> AggregateFigures {
        self.lock().clone()
    }

    /// Durable events of all types that it hasn't read yet.
    #[must_use]
    pub fn lag(&self) -> u64 {
        let figures = self.lock();
        let behind = |(shard, read): (&Arc<eventlog::Shard>, &u64)| shard.durable().saturating_sub(*read);
        self.log.shards().iter().zip(&figures.positions).map(behind).sum()
    }

    pub(crate) fn show(&self, figures: AggregateFigures) {
        *self.lock() = figures;
    }
}

/// The aggregates that there are now, by name; they change with the configuration. Cheap to clone.
#[derive(Clone, Default)]
pub struct AggregateBoard(Arc<Mutex<Vec<Arc<AggregateStatus>>>>);

impl AggregateBoard {
    /// All of them.
    #[must_use]
    pub fn aggregates(&self) -> Vec<Arc<AggregateStatus>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn show(&self, aggregates: Vec<Arc<AggregateStatus>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = aggregates;
    }
}
