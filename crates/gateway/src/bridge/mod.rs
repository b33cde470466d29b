//! The bridge: requests of HTTP that services answer over the bus.

mod counters;
mod methods;
mod path;
mod rules;
mod table;

pub use counters::{BridgeBoard, BridgeCounters};
pub use methods::{InvalidMethod, Methods};
pub use path::{InvalidPath, PathPattern};
pub use rules::{BridgeAccess, BridgeRule, InvalidPass, passed_header};
pub(crate) use table::{Bridge, BridgeTable, BridgedPath};
