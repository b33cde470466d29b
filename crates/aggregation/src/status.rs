//! The status of aggregates, for metrics and for the operator.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aggregate::{Fold, FoldCounts};
use event::TypeName;
use eventlog::EventLog;
use metrics::Counter;

/// The state of an aggregate at one moment.
#[derive(Clone, Debug, Default)]
pub struct AggregateFigures {
    /// The outcomes of its events. Saved with its state: a crash does not change them.
    pub counts: FoldCounts,
    /// Windows that may still change.
    pub windows: usize,
    /// Groups of all of them.
    pub groups: usize,
    /// Bytes of the groups, as they count against the budget.
    pub memory_bytes: usize,
    /// The budget of these bytes.
    pub memory_limit_bytes: usize,
    /// The watermark: all events up to it have arrived, except late ones. Microseconds since 1970, UTC.
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

/// The status of one aggregate.
pub struct AggregateStatus {
    name: TypeName,
    log: Arc<EventLog>,
    figures: Mutex<AggregateFigures>,
    /// Saves of its state.
    pub saves: Counter,
    /// Saves of its state that failed.
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

    /// Its state.
    #[must_use]
    pub fn figures(&self) -> AggregateFigures {
        self.lock().clone()
    }

    /// Durable events of all types that it hasn't read yet.
    #[must_use]
    pub fn lag(&self) -> u64 {
        let figures = self.lock();
        let unread = |(shard, read): (&Arc<eventlog::Shard>, &u64)| shard.durable().saturating_sub(*read);
        self.log.shards().iter().zip(&figures.positions).map(unread).sum()
    }

    pub(crate) fn show(&self, figures: AggregateFigures) {
        *self.lock() = figures;
    }
}

/// The present aggregates, by name; they change with the configuration. Cheap to clone.
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
