//! A NATS server with JetStream, and a stream that the sink creates.

use std::fs::File;
use std::io::{BufWriter, Write};

use anyhow::{Result, bail};
use serde_json::Value;

use super::{CampaignStore, StoreServer};
use testkit::nats::NatsServer;

/// The stream that events become messages of, and their subjects.
const STREAM: &str = "EVENTS";
const SUBJECTS: &str = "events.>";

/// A server.
pub struct NatsStore(NatsServer);

impl NatsStore {
    /// A stream that is full, or has room without end.
    pub(super) fn limit(&self, is_full: bool) -> Result<()> {
        let (discard, bytes) = if is_full { ("new", 1) } else { ("old", -1) };
        self.update(|config| {
            config["discard"] = discard.into();
            config["max_bytes"] = bytes.into();
        })
    }

    /// A stream that listens to these subjects and to Forebay's own.
    pub(super) fn listen(&self, subjects: &str) -> Result<()> {
        self.update(|config| {
            config["subjects"] = vec![subjects.to_owned(), format!("forebay.cursors.{STREAM}.>")].into()
        })
    }

    fn update(&self, change: impl FnOnce(&mut Value)) -> Result<()> {
        let mut client = self.0.client();
        let mut info: Value = serde_json::from_str(&client.stream("INFO", STREAM, ""))?;
        change(&mut info["config"]);
        let answer = client.stream("UPDATE", STREAM, &info["config"].to_string());
        if answer.contains("\"error\"") { bail!("the stream isn't changed: {answer}") } else { Ok(()) }
    }
}

impl CampaignStore for NatsStore {
    const NAME: &'static str = "NATS";

    fn start() -> Result<Option<Self>> {
        Ok(NatsServer::start().map(Self))
    }
}

impl StoreServer for NatsStore {
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

    fn write_payloads(&mut self, out: &mut BufWriter<File>) -> Result<()> {
        let mut written = Ok(());
        self.0.client().each(STREAM, SUBJECTS, |message| {
            if written.is_ok() {
                written = out.write_all(&[&message.payload[..], b"\n"].concat());
            }
        });
        Ok(written?)
    }
}
