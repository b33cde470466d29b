//! OpenStack Swift: requests are authenticated by a token, and the response with the token has the URL of the objects.

mod config;
mod container;
mod keystone;
mod session;
mod settings;
mod store;
mod tempauth;

pub use config::{Auth, KeystoneIdentity, SwiftConfig};
pub use container::{Container, InvalidContainer};
pub use settings::KIND;
pub use store::sink;
