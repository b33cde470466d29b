//! The time for rustls, whose own provider panics if the clock is before 1970.

use std::sync::Arc;

use rustls::Error;
use rustls::crypto::ring::Ticketer;
use rustls::pki_types::UnixTime;
use rustls::server::ProducesTickets;
use rustls::time_provider::TimeProvider;

/// The wall clock.
#[derive(Debug)]
pub(crate) struct WallClock;

impl TimeProvider for WallClock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(clock::since_1970()))
    }
}

/// Tickets of rustls. While the clock is before 1970 there are none, and each connection has a whole handshake.
#[derive(Debug)]
pub(crate) struct Tickets(Arc<dyn ProducesTickets>);

impl Tickets {
    /// `None` while the clock is before 1970.
    pub(crate) fn make() -> Result<Option<Arc<dyn ProducesTickets>>, Error> {
        if clock::is_before_1970() {
            return Ok(None);
        }
        Ok(Some(Arc::new(Self(Ticketer::new()?))))
    }
}

impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        self.0.enabled()
    }

    fn lifetime(&self) -> u32 {
        self.0.lifetime()
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        if clock::is_before_1970() { None } else { self.0.encrypt(plain) }
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        if clock::is_before_1970() { None } else { self.0.decrypt(cipher) }
    }
}
