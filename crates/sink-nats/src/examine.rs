//! Examines a server and its stream: version, JetStream, clock and settings. It changes nothing.

use std::time::Duration;

use sink::Examination;
use text::rfc3339;

use super::api;
use super::config::NatsConfig;
use super::error::Failure;
use super::preflight::Durability;
use nats::Session;

/// Examines the stream.
pub(super) async fn examine(config: &NatsConfig) -> Result<Examination, Failure> {
    let mut found = Examination::default();
    let mut session = Session::open(&config.connect_options(), config.timeout).await?;
    found.see(format!("NATS {}", session.greeting().version));
    found.begin_clock();
    let stream = api::find(&mut session, config).await?;
    let Some(stream) = stream else {
        if config.creation.is_none() {
            found.fail(
                "the stream doesn't exist, and `create = false`",
                "Create the stream, or remove `create = false`",
            );
        } else {
            found.see("JetStream is enabled, and Forebay creates the stream at the first connection");
        }
        return Ok(found);
    };
    if let Some(time) = rfc3339::parse(&stream.ts).ok().and_then(|time| u64::try_from(time).ok()) {
        found.compare_clock(Duration::from_micros(time), Duration::ZERO);
    }
    // The stream exists, so nothing is created.
    let durability = Durability::of(&mut session, config).await?;
    found.see("JetStream is enabled, and the stream accepts events and cursors");
    found.warn_of_loss(durability.warning);
    Ok(found)
}
