//! A client of NATS: the protocol, servers and credentials, and connections.
//!
//! * [`Session`] has one call at a time, which also drives it. A store's lane uses it.
//! * [`Bus`] has many requests and subscriptions of one thread, and reconnects.

mod bus;
mod connect_options;
mod credentials;
mod error;
mod greeting;
mod message;
mod protocol;
mod server;
mod session;
mod subject;
mod wire;

pub use bus::{Bus, BusError, Outgoing, Subscription};
pub use connect_options::ConnectOptions;
pub use error::{Advice, Error};
pub use greeting::Greeting;
pub use message::{Headers, MalformedHeaders, Message};
pub use protocol::{length_of_headers, publish};
pub use server::{InvalidServers, Servers};
pub use session::{Answers, Session};
pub use subject::{InvalidSubject, Subject};
pub use wire::random;
