//! Aggregates: the events of a type, gathered in windows of time and groups, become results.
//!
//! [`Fold`] is a pure function with a state: events with their positions and times go in, results come out, and no
//! clock, disk or network is touched. The state can be saved, and continues from there to the same results. What comes
//! out doesn't depend on the order between shards: whether an event is late, which groups are kept and what a result's
//! revision is depend on the events alone. `docs/reference/aggregates.md` says what there is, and
//! `docs/internals/decisions/012-order-independent-aggregates.md` why it is so and how a delivery uses it.

mod accumulator;
mod codec;
mod counts;
mod distinct;
mod exact_sum;
mod extract;
mod fold;
mod group;
mod measure;
mod number;
mod pane;
mod partial;
mod quantiles;
mod result;
mod rules;
mod sample;
mod sessions;
mod sum;
#[cfg(test)]
mod tests;
mod time_windows;
mod top;
mod watermark;
mod window;

pub use codec::Damaged;
pub use counts::{FoldCounts, LeftOut};
pub use fold::{Fold, InvalidState};
pub use partial::{NotMergeable, merge};
pub use result::{WITHDRAWN, WindowResult, result_schema};
pub use rules::{AggregateRules, Definition, Emit, InvalidDefinition, Late, TimeBasis};
