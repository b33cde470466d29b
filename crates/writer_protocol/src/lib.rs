//! The protocol between a gateway and a writer: `sink-remote` is its client, `writer` its server. `docs/writer-protocol.md` documents it.

pub mod frame;
pub mod object;
pub mod protocol;
pub mod read;
