//! What puts Forebay under load and looks at what came of it. It speaks public HTTP, like any other client.

pub mod bench;
mod http;
pub mod loader;

pub use generator;
pub use http::server::{IngestEndpoint, IngestResponse, ServerConnector};
pub use http::target::ServerUrl;
