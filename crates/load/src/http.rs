//! HTTP/1.1 from the client's side: as much as talking to Forebay needs, and to a proxy in front of it.

pub(crate) mod answer;
pub(crate) mod connection;
pub(crate) mod server;
pub(crate) mod stream;
pub(crate) mod target;
