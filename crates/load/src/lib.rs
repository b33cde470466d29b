//! What puts Forebay under load and looks at what came of it. It speaks public HTTP, like any other client.

pub mod bench;
pub mod generator;
mod http;
pub mod loader;

pub use http::server::{Server, Wire};
pub use http::target::{Target, TargetError};
