//! OpenStack Swift: a token says who asks, and the answer to who asks for one says where the objects are.

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
