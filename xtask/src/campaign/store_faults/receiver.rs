//! A receiver of webhooks that answers each of its errors to every request.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;

use crate::server::Server;
use crate::store::{CampaignStore, FaultyStore, StoreServer};
use testkit::mock_server::MockServer;

const ACCEPTED: u16 = 204;

/// The receiver, and its answers.
pub(super) struct Receiver {
    server: MockServer,
    answer: Arc<AtomicU16>,
    accepted: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl CampaignStore for Receiver {
    const NAME: &'static str = "webhook";

    fn start() -> Result<Option<Self>> {
        let (answer, accepted) = (Arc::new(AtomicU16::new(ACCEPTED)), Arc::<Mutex<Vec<Vec<u8>>>>::default());
        let (current, kept, mut known) = (answer.clone(), accepted.clone(), HashSet::new());
        let server = MockServer::start(move |asked| {
            let status = current.load(Ordering::SeqCst);
            let id = asked.header("webhook-id").unwrap_or_default().to_owned();
            // A resent message has the same id.
            if status == ACCEPTED
                && known.insert(id)
                && let Ok(mut kept) = kept.lock()
            {
                kept.push(asked.body.clone());
            }
            (status, Vec::new(), Vec::new())
        });
        Ok(Some(Self { server, answer, accepted }))
    }
}

impl StoreServer for Receiver {
    fn sink(&self) -> String {
        format!("kind = \"webhook\"\nurl = \"http://{}/\"\nmax_backlog = \"1TiB\"\n", self.server.address)
    }

    fn write_payloads(&mut self, out: &mut BufWriter<File>) -> Result<()> {
        if let Ok(accepted) = self.accepted.lock() {
            accepted.iter().try_for_each(|payload| out.write_all(&[payload.as_slice(), b"\n"].concat()))?;
        }
        Ok(())
    }
}

impl FaultyStore for Receiver {
    const FAULTS: &'static [&'static str] = &["400", "401", "404", "408", "413", "422", "429", "500", "503"];

    /// Each event is a request on a separate connection.
    const REST: Duration = Duration::from_millis(200);

    fn begin(&mut self, fault: &str, _: u32, _: &Server) -> Result<()> {
        self.answer.store(fault.parse()?, Ordering::SeqCst);
        Ok(())
    }

    fn end(&mut self, _: &str) -> Result<()> {
        self.answer.store(ACCEPTED, Ordering::SeqCst);
        Ok(())
    }
}
