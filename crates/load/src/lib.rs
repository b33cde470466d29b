//! Puts Forebay under load and checks the results. It uses public HTTP, like any other client.

pub mod bench;
mod blocking_client;
pub mod loader;
mod poller;
pub mod scenario;
mod server;
mod server_url;

pub use blocking_client::ServerResponse;
pub use generator;
pub use server::{IngestEndpoint, ServerConnector};
pub use server_url::ServerUrl;
