//! Settings of a port: its names, its certificate, and the access to it.

pub(crate) mod address;
pub(crate) mod hosts;
pub(crate) mod origins;
pub(crate) mod proxies;
pub(crate) mod tls;
pub mod tls_files;
pub(crate) mod tokens;
