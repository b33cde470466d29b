//! Requests to JetStream other than publishing: about the account, about a stream, and for single messages of it.
//! Requests and responses are JSON.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use text::rfc3339;

use super::api_error::ApiError;
use super::config::{Creation, NatsConfig};
use super::error::Failure;
use super::stream_name::StreamName;
use super::subject;
use nats::Session;

/// There is no such stream.
const NO_STREAM: u32 = 10059;
/// There is no such message.
const NO_MESSAGE: u32 = 10037;
/// Another client has created the stream in the meantime.
const STREAM_EXISTS: u32 = 10058;

/// A stream as the server describes it.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct StreamInfo {
    pub(super) config: StreamConfig,
    /// The server's clock.
    #[serde(default)]
    pub(super) ts: String,
}

/// The part of a stream's configuration that matters here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct StreamConfig {
    pub(super) subjects: Vec<String>,
    pub(super) retention: String,
    pub(super) discard: String,
    pub(super) storage: String,
    pub(super) num_replicas: u8,
    pub(super) max_msgs: i64,
    pub(super) max_bytes: i64,
    /// Nanoseconds.
    pub(super) max_age: i64,
    /// Nanoseconds for which the server drops a message with a known id.
    pub(super) duplicate_window: i64,
    pub(super) max_msg_size: i64,
    pub(super) no_ack: bool,
    pub(super) sealed: bool,
    pub(super) deny_purge: bool,
    pub(super) allow_rollup_hdrs: bool,
    pub(super) allow_msg_ttl: bool,
    pub(super) allow_msg_counter: bool,
    pub(super) allow_atomic: bool,
    pub(super) mirror: Option<Value>,
    pub(super) subject_transform: Option<Value>,
}

/// A message that is stored.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct StoredMessage {
    pub(super) seq: u64,
    #[serde(default)]
    hdrs: String,
    /// When it was stored, by the server's clock.
    #[serde(default)]
    time: String,
}

impl StoredMessage {
    /// The value of a header.
    pub(super) fn header(&self, name: &str) -> Option<String> {
        let headers = String::from_utf8(STANDARD.decode(&self.hdrs).ok()?).ok()?;
        let value = |line: &str| line.strip_prefix(name)?.strip_prefix(':').map(|value| value.trim().to_owned());
        headers.lines().find_map(value)
    }
}

/// The stream, which is created if it is missing and `create` allows it.
pub(super) async fn stream(session: &mut Session, config: &NatsConfig) -> Result<StreamConfig, Failure> {
    match (find(session, config).await?, config.creation) {
        (Some(info), _) => Ok(info.config),
        (None, Some(creation)) => create(session, config, creation).await,
        (None, None) => Err(Failure::Misfit("the stream doesn't exist, and `create = false`: create it".to_owned())),
    }
}

/// The stream; `None` if it doesn't exist.
pub(super) async fn find(session: &mut Session, config: &NatsConfig) -> Result<Option<StreamInfo>, Failure> {
    let subject = format!("$JS.API.STREAM.INFO.{}", config.stream);
    match request::<StreamInfo>(session, &subject, b"").await? {
        Ok(info) => Ok(Some(info)),
        Err(error) if error.err_code == NO_STREAM => Ok(None),
        Err(error) => Err(Failure::JetStream(error)),
    }
}

async fn create(session: &mut Session, config: &NatsConfig, creation: Creation) -> Result<StreamConfig, Failure> {
    let subject = format!("$JS.API.STREAM.CREATE.{}", config.stream);
    let age_max = creation.age_max.map_or(0, |age| i64::try_from(age.as_nanos()).unwrap_or(i64::MAX));
    let wanted = json!({
        "name": config.stream.to_string(),
        "subjects": [config.subject.wildcard(), subject::of_cursors(&config.stream)],
        "retention": "limits", "storage": "file", "discard": "new", "num_replicas": creation.replicas, "max_age": age_max,
        "max_msgs": -1, "max_bytes": -1, "max_consumers": -1, "max_msg_size": -1, "max_msgs_per_subject": -1,
        "allow_atomic": true, "allow_rollup_hdrs": true, "allow_msg_ttl": true, "allow_direct": true,
    });
    match request::<StreamInfo>(session, &subject, wanted.to_string().as_bytes()).await? {
        Ok(info) => Ok(info.config),
        Err(error) if error.err_code == STREAM_EXISTS => {
            Err(Failure::NotReady("another lane has just created the stream. Forebay checks it again".to_owned()))
        }
        Err(error) => Err(Failure::JetStream(error)),
    }
}

/// The last message with a subject.
pub(super) async fn last_of(
    session: &mut Session,
    stream: &StreamName,
    subject: &str,
) -> Result<Option<StoredMessage>, Failure> {
    message(session, stream, &json!({ "last_by_subj": subject })).await
}

/// The message with this sequence.
pub(super) async fn at(
    session: &mut Session,
    stream: &StreamName,
    sequence: u64,
) -> Result<Option<StoredMessage>, Failure> {
    message(session, stream, &json!({ "seq": sequence })).await
}

#[derive(Deserialize)]
struct Got {
    message: StoredMessage,
}

async fn message(session: &mut Session, stream: &StreamName, which: &Value) -> Result<Option<StoredMessage>, Failure> {
    let subject = format!("$JS.API.STREAM.MSG.GET.{stream}");
    match request::<Got>(session, &subject, which.to_string().as_bytes()).await? {
        Ok(got) => Ok(Some(got.message)),
        Err(error) if error.err_code == NO_MESSAGE => Ok(None),
        Err(error) => Err(Failure::JetStream(error)),
    }
}

/// Whether a message is so new that its neighbours can't have expired, and that the server still has their ids.
pub(super) async fn is_recent(
    session: &mut Session,
    stream: &StreamName,
    message: &StoredMessage,
) -> Result<bool, Failure> {
    let subject = format!("$JS.API.STREAM.INFO.{stream}");
    let info = request::<StreamInfo>(session, &subject, b"").await?.map_err(Failure::JetStream)?;
    let times = (rfc3339::parse(&info.ts), rfc3339::parse(&message.time));
    let (Ok(now), Ok(stored_at)) = times else { return Ok(false) };
    let nanoseconds = now.saturating_sub(stored_at).saturating_mul(1_000);
    let StreamConfig { duplicate_window, max_age, .. } = info.config;
    Ok(nanoseconds < duplicate_window && (max_age == 0 || nanoseconds < max_age))
}

#[derive(Deserialize)]
struct AccountInfo {
    limits: AccountLimits,
    #[serde(default)]
    tiers: Option<Value>,
}

#[derive(Deserialize)]
struct AccountLimits {
    max_storage: i64,
    max_memory: i64,
}

/// Whether the account's storage is limited only by the servers' space.
pub(super) async fn is_account_unlimited(session: &mut Session) -> Result<bool, Failure> {
    let answer = request::<AccountInfo>(session, "$JS.API.INFO", b"").await?;
    Ok(answer.is_ok_and(|info| info.tiers.is_none() && info.limits.max_storage < 0 && info.limits.max_memory < 0))
}

#[derive(Deserialize)]
struct Failed {
    error: ApiError,
}

/// The response of JetStream to a request.
async fn request<T: DeserializeOwned>(
    session: &mut Session,
    subject: &str,
    payload: &[u8],
) -> Result<Result<T, ApiError>, Failure> {
    let answer = session.request(subject, payload).await?;
    read(&answer)
}

/// A response, or its error.
pub(super) fn read<T: DeserializeOwned>(answer: &[u8]) -> Result<Result<T, ApiError>, Failure> {
    if let Ok(failed) = serde_json::from_slice::<Failed>(answer) {
        return Ok(Err(failed.error));
    }
    let unexpected = |_| {
        Failure::Unexpected(
            "JetStream returned an invalid response: check the server's version and log. Forebay retries",
        )
    };
    serde_json::from_slice(answer).map(Ok).map_err(unexpected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_and_errors_are_distinguished() {
        let answer =
            br#"{"type": "x", "config": {"name": "E", "subjects": ["a"], "max_age": 5, "mirror": {"name": "M"}}}"#;
        let config = read::<StreamInfo>(answer).unwrap().unwrap().config;
        assert_eq!((config.subjects, config.max_age, config.mirror.is_some()), (vec!["a".to_owned()], 5, true));
        let error = br#"{"type": "x", "error": {"code": 404, "err_code": 10059, "description": "stream not found"}}"#;
        assert_eq!(read::<StreamInfo>(error).unwrap().unwrap_err().err_code, NO_STREAM);
        assert!(matches!(read::<StreamInfo>(b"{}"), Err(Failure::Unexpected(_))));
    }

    #[test]
    fn headers_are_found_by_name() {
        let hdrs = STANDARD.encode("NATS/1.0\r\nForebay-Cursor: 12\r\nNats-Batch-Id: x\r\n\r\n");
        let stored = StoredMessage { seq: 1, hdrs, time: String::new() };
        assert_eq!(stored.header("Forebay-Cursor").as_deref(), Some("12"));
        assert_eq!((stored.header("Forebay"), stored.header("Nats-Batch-Sequence")), (None, None));
    }
}
