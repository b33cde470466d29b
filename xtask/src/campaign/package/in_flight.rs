//! A request that begins before the server stops and ends while it stops. The server must answer it.

use std::net::{SocketAddr, TcpStream};

use anyhow::{Context, Result, ensure};

use super::LIMIT;
use crate::http::{self, Connection};
use crate::wait::until;

/// The condition in SQL that selects these events, and not those of the clients.
pub(super) const IS_SUCH: &str = "payload like '{\"begun_before\"%'";
/// The number of the request's bytes that are sent while the server stops.
const HELD_BACK: usize = 3;

/// A request without its end.
pub(super) struct InFlight {
    connection: Connection,
    rest: Vec<u8>,
    server: SocketAddr,
}

impl InFlight {
    /// Sends all but the end. `number` makes the event unique.
    pub(super) fn begin(server: SocketAddr, number: usize) -> Result<Self> {
        let mut request = http::post("/ingest/event", &[], format!("{{\"begun_before\": {number}}}").as_bytes());
        let rest = request.split_off(request.len() - HELD_BACK);
        let mut connection = Connection::open(server).context("connecting before a stop")?;
        connection.begin(&request)?;
        Ok(Self { connection, rest, server })
    }

    /// Sends the end after the server has closed its port, and expects the answer.
    pub(super) fn end(mut self) -> Result<()> {
        until("the server stops", LIMIT, || Ok(TcpStream::connect(self.server).is_err()))?;
        let answer = self.connection.send(&self.rest).context("a request was in flight when the server stopped")?;
        ensure!(answer.status == 200, "a request in flight was answered {} by a server that stops", answer.status);
        Ok(())
    }
}
