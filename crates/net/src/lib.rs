//! Network clients and TLS: a TLS server and client, an HTTP/1.1 client, streams with or without TLS. Also connection limits of ports,
//! and how a server closes a connection while a body still arrives.

pub mod connections;
pub mod http_client;
pub mod lingering_close;
pub mod newcomers;
pub mod stream;
pub mod tls;
