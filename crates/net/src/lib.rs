//! Network clients and TLS: a TLS server and client, a client of HTTP/1.1, streams with or without TLS, limits of a port's connections,
//! and how a server closes a connection on which a body still comes.

pub mod connections;
pub mod draining;
pub mod http_client;
pub mod newcomers;
pub mod stream;
pub mod tls;
