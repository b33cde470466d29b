//! HTTP in, event log out: takes events and batches, refuses what can't be taken, and answers 200 when the bytes
//! are durable. It knows no sink: where events go is none of its business.
//!
//! One listener hands sockets to shards. A shard is one thread with one runtime and one journal: what its
//! runtime's turn has gathered is committed as one block where the runtime would park, and then answered.

mod ack;
mod acknowledged;
mod acknowledgement;
mod admission;
mod answer;
mod arriving;
mod batch;
mod batch_room;
mod beside;
mod caller;
mod code;
mod control;
mod cors;
mod counters;
mod decoder;
mod decoding;
mod effort;
mod encoder;
mod event_request;
mod fair_turns;
mod filter_counts;
mod forecast;
mod forwarded;
mod gatekeeper;
mod gateway;
mod headers;
mod http1;
mod intake;
mod listener;
mod pages;
mod part_ids;
mod patience;
mod places;
mod problem;
mod proxies;
mod read;
mod readiness;
mod rehearsal;
mod request;
mod route;
mod shares;
mod stepped;
mod stored;
mod text_rule;
mod turn_clock;
mod type_cache;
mod type_choice;
mod type_finder;
mod type_steps;
mod type_table;
mod worker;

pub use code::Code;
pub use control::GatewayControl;
pub use counters::{GatewayCounters, StatusClass};
pub use gateway::{Gateway, GatewayOptions};
pub use places::{Free, Place, Places};
pub use read::ObjectReaders;
pub use readiness::Readiness;
pub use rehearsal::{Around, End, Rehearsal, Rehearsed, Rejection, TakenEvent};
pub use request::DEFAULT_TYPE;
pub use route::RouteName;
pub use text_rule::TextRule;
pub use type_choice::TypeChoice;
pub use type_finder::TypeFinder;
pub use type_steps::TypeSteps;
pub use type_table::{GatewayTypes, TypeRules};
