//! The store id (mark) of a stream: a message with a separate subject, next to those of cursors.

use super::config::NatsConfig;
use super::error::Failure;
use super::publish;
use super::{api, subject};
use nats::Session;
use sink::Mark;

/// The header with the store id.
const MARK: &str = "Forebay-Mark";

/// Reads the store id, and creates it if the stream has none. `has_age`: whether the stream deletes old messages.
pub(super) async fn of(session: &mut Session, config: &NatsConfig, has_age: bool) -> Result<Mark, Failure> {
    let (stream, subject) = (&config.stream, subject::of_mark(&config.stream));
    if let Some(mark) = read(session, config, &subject).await? {
        return Ok(mark);
    }
    let mark = Mark::random()?;
    // Of several concurrent writers, the server accepts the first message only.
    let mut headers = format!("{MARK}: {mark}\r\nNats-Expected-Stream: {stream}\r\n{}: 0\r\n", super::cursor::BEFORE);
    if has_age {
        headers.push_str("Nats-TTL: never\r\n");
    }
    publish::one(session, &subject, &headers).await?;
    read(session, config, &subject).await?.ok_or(INVALID_ID)
}

async fn read(session: &mut Session, config: &NatsConfig, subject: &str) -> Result<Option<Mark>, Failure> {
    let Some(message) = api::last_of(session, &config.stream, subject).await? else { return Ok(None) };
    let mark = message.header(MARK).and_then(|text| text.parse().ok());
    mark.map(Some).ok_or(INVALID_ID)
}

const INVALID_ID: Failure = Failure::Unexpected(
    "the stream's store id is invalid: check whether another program publishes to Forebay's subjects",
);
