//! Network clients and TLS: a TLS server and client, a client of HTTP/1.1, and streams with or without TLS.

pub mod http_client;
pub mod stream;
pub mod tls;
