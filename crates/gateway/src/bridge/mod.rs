//! The bridge: requests of HTTP that services answer over the bus.

mod methods;
mod path;
mod rules;

pub use methods::{InvalidMethod, Methods};
pub use path::{InvalidPath, PathPattern};
pub use rules::{BridgeAccess, BridgeRule, InvalidPass, passed_header};
