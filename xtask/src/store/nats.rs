//! A NATS server with JetStream, and a stream that the sink makes.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use anyhow::Result;

use super::CampaignStore;
use testkit::nats::{NatsServer, ROOMY};

/// The stream that events become messages of, and their subjects.
const STREAM: &str = "EVENTS";
const SUBJECTS: &str = "events.>";

/// A server.
pub struct NatsStore(NatsServer);

impl CampaignStore for NatsStore {
    const NAME: &'static str = "NATS";

    fn start() -> Result<Option<Self>> {
        Ok(NatsServer::start_from(crate::nats::program()?, ROOMY).map(Self))
    }

    fn sink(&self) -> String {
        format!("kind = \"nats\"\nurl = \"nats://{}\"\nstream = \"{STREAM}\"\n", self.0.address())
    }

    fn run(&mut self) -> Result<()> {
        self.0.run();
        Ok(())
    }

    fn kill(&mut self) -> Result<()> {
        self.0.kill();
        Ok(())
    }

    fn stored(&mut self) -> u64 {
        self.0.client().count(STREAM).unwrap_or(0)
    }

    fn read_payloads(&mut self, folder: &Path, read: impl FnOnce(&mut dyn BufRead) -> Result<()>) -> Result<()> {
        let path = folder.join("payloads");
        let mut file = BufWriter::new(File::create(&path)?);
        let mut written = Ok(());
        self.0.client().each(STREAM, SUBJECTS, |message| {
            if written.is_ok() {
                written = file.write_all(&[&message.payload[..], b"\n"].concat());
            }
        });
        written?;
        file.flush()?;
        read(&mut BufReader::new(File::open(path)?))
    }
}
