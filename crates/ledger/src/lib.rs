//! The ledger: for each type and each of its sinks, accepted = stored + dead + skipped + lost + pending, at every moment.
//!
//! It has the routes with their conditions, the cursors of all lanes and the outcomes of events. [`Ledger`] counts
//! while a process runs; [`Reconciler`] compares the saved state with a configuration; [`RouteFilter`] decides which
//! events of its shard a lane delivers.

mod claims;
mod codec;
mod condition;
mod discarded;
mod dispute;
mod event_route;
mod ledger;
mod load;
mod outcomes;
mod reconcile;
mod recount;
mod route_filter;
mod route_state;
mod routes;
mod rows;
mod state;

pub use claims::SAVED_SOON;
pub use codec::Document;
pub use condition::{CONDITION_FAILED, Condition, Passage, RouteDecision, Undecided};
pub use discarded::{Discarded, nothing_to_discard};
pub use dispute::{Accept, Dispute};
pub use event_route::{EventDecision, EventRoute};
pub use ledger::{Ledger, Stamp};
pub use load::{DiscardError, LedgerLoadError, SavedLedger};
pub use outcomes::{OutcomeCounts, Tally};
pub use reconcile::{Begin, ConfiguredRoutes, ConfiguredSink, DeferredEvents, Reconciler};
pub use recount::Recount;
pub use route_filter::{CountsBySlot, RouteFilter};
pub use routes::{Routes, SinkName};
pub use rows::{LedgerRow, SinkRow};
pub use state::{LaneProgress, LedgerState, SinkProgress};
