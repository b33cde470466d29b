//! A client for etcd's JSON gateway, `/v3`, which etcd has since 3.4. It has the requests of discovery and registration, and uses the HTTP client
//! of the sinks. Keys and values are base64, and 64-bit numbers are strings.

mod client;
mod error;
mod requests;
#[cfg(test)]
mod tests;
mod watch;

pub(crate) use client::Client;
pub(crate) use error::EtcdError;
pub(crate) use requests::{Entries, LeaseId};
pub(crate) use watch::Watch;
