//! Checks a server and a stream before anything is written: whether it accepts atomic batches, whether it may delete a
//! cursor, and what it loses in a crash.

use super::api::{self, StreamConfig};
use super::config::NatsConfig;
use super::error::Failure;
use super::subject;
use nats::Session;

/// The oldest version whose atomic batches allow message ids: 2.12.1.
const VERSION_MIN: (u32, u32, u32) = (2, 12, 1);

/// The properties of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Durability {
    /// The subjects that it listens to.
    pub(super) subjects: Vec<String>,
    /// The maximum of bytes of a message, including headers.
    pub(super) message_bytes_max: usize,
    /// Whether messages expire, so cursors must be exempt.
    pub(super) has_age: bool,
    /// Whether an acknowledged batch may be stored in part, and must be checked.
    pub(super) may_be_torn: bool,
    /// What it may lose although it has acknowledged a write; `None` if only a minority of servers may lose data.
    pub(super) warning: Option<&'static str>,
}

impl Durability {
    /// Checks the server. A stream that rejects writes, or that might delete a cursor, is a failure.
    pub(super) async fn of(session: &mut Session, config: &NatsConfig) -> Result<Self, Failure> {
        let version = session.greeting().version.clone();
        if !is_new_enough(&version) {
            let (major, minor, patch) = VERSION_MIN;
            let why = format!(
                "its version is {version:?}: upgrade it to {major}.{minor}.{patch} or later, for atomic \
                 batches"
            );
            return Err(Failure::Misfit(why));
        }
        let stream = api::stream(session, config).await?;
        let mut durability = judge(&stream, config)?;
        let max = session.greeting().max_payload;
        durability.message_bytes_max = durability.message_bytes_max.min(max);
        // A single server continues a batch whose middle had no room in its account, and acknowledges it.
        durability.may_be_torn = stream.num_replicas <= 1 && !api::is_account_unlimited(session).await?;
        Ok(durability)
    }

    /// Whether the stream accepts a message with this subject.
    pub(super) fn accepts(&self, subject: &str) -> bool {
        self.subjects.iter().any(|wildcard| subject::accepts(wildcard, subject))
    }
}

fn is_new_enough(version: &str) -> bool {
    let mut numbers = version.split(['.', '-', '+']).map(|part| part.parse().unwrap_or(0));
    let mut next = || numbers.next().unwrap_or(0);
    (next(), next(), next()) >= VERSION_MIN
}

/// What is wrong with a stream, and how to fix it.
fn flaw(stream: &StreamConfig, config: &NatsConfig) -> Option<String> {
    let cursors = subject::of_cursors(&config.stream);
    let drops_oldest = stream.discard != "new" && (stream.max_msgs > 0 || stream.max_bytes > 0);
    let set = |setting: &str, why: &str| Some(format!("{why}: set {setting}"));
    match () {
        () if stream.mirror.is_some() => Some("it is a mirror: set `stream` to its source".to_owned()),
        () if stream.sealed => Some("the stream is sealed, and rejects messages: set another `stream`".to_owned()),
        () if stream.subject_transform.is_some() => {
            Some("it changes subjects, so cursors wouldn't be found: remove subject_transform".to_owned())
        }
        () if stream.no_ack => set("no_ack false", "it doesn't acknowledge messages"),
        () if stream.allow_msg_counter => Some("it is a stream of counters: set another `stream`".to_owned()),
        () if stream.retention != "limits" => Some(format!(
            "its retention is {:?}: it would delete the cursor. Use a stream with retention limits; a stream of \
             another kind can have that one as its source",
            stream.retention
        )),
        () if drops_oldest => set(
            "discard new, or max_age instead of max_msgs and max_bytes",
            "with max_msgs or max_bytes and discard old it might delete the cursor",
        ),
        () if !stream.allow_atomic => set("allow_atomic true", "it rejects atomic batches"),
        () if !stream.allow_rollup_hdrs || stream.deny_purge => {
            set("allow_rollup_hdrs true and deny_purge false", "a cursor can't replace the previous one")
        }
        () if stream.max_age > 0 && !stream.allow_msg_ttl => {
            set("allow_msg_ttl true", "with max_age it would delete the cursor")
        }
        () if !stream.subjects.iter().any(|wildcard| subject::accepts(wildcard, &cursors)) => {
            Some(format!("it doesn't listen to {cursors}, the subjects of cursors: add it to its subjects"))
        }
        () => None,
    }
}

/// Checks the server's description of a stream.
fn judge(stream: &StreamConfig, config: &NatsConfig) -> Result<Durability, Failure> {
    if let Some(why) = flaw(stream, config) {
        return Err(Failure::Misfit(why));
    }
    let warning = match (stream.storage.as_str(), stream.num_replicas) {
        ("memory", 0 | 1) => {
            Some("its messages are in memory, so a restart of the server loses all of them: set storage file")
        }
        ("memory", _) => {
            Some("its messages are in memory, so they are lost if all servers are down together: set storage file")
        }
        (_, 0 | 1) => Some(
            "it has one replica: unless its server has `sync_interval: always`, a crash of its machine loses the last \
             two minutes, and Forebay delivers these again. Three replicas survive a crash of one machine",
        ),
        _ => None,
    };
    Ok(Durability {
        subjects: stream.subjects.clone(),
        message_bytes_max: usize::try_from(stream.max_msg_size).ok().filter(|max| *max > 0).unwrap_or(usize::MAX),
        has_age: stream.max_age > 0,
        may_be_torn: false,
        warning,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::Value;

    use super::*;

    fn config() -> NatsConfig {
        NatsConfig {
            servers: "nats://one".parse().unwrap(),
            credentials: None,
            ca: None,
            stream: "EVENTS".parse().unwrap(),
            subject: "events.{type}".parse().unwrap(),
            creation: None,
            timeout: Duration::from_secs(1),
            connections_max: NatsConfig::CONNECTIONS_MAX,
        }
    }

    fn stream() -> StreamConfig {
        StreamConfig {
            subjects: vec!["events.>".to_owned(), "forebay.cursors.EVENTS.>".to_owned()],
            retention: "limits".to_owned(),
            discard: "old".to_owned(),
            storage: "file".to_owned(),
            num_replicas: 3,
            max_msgs: -1,
            max_bytes: -1,
            max_msg_size: -1,
            allow_atomic: true,
            allow_rollup_hdrs: true,
            ..StreamConfig::default()
        }
    }

    fn why(change: impl FnOnce(&mut StreamConfig)) -> String {
        let mut stream = stream();
        change(&mut stream);
        flaw(&stream, &config()).unwrap_or_default()
    }

    #[test]
    fn unsuitable_stream_is_rejected() {
        assert_eq!(flaw(&stream(), &config()), None);
        for (said, words) in [
            (why(|stream| stream.mirror = Some(Value::Null)), "mirror"),
            (why(|stream| stream.sealed = true), "sealed"),
            (why(|stream| stream.subject_transform = Some(Value::Null)), "subject_transform"),
            (why(|stream| stream.no_ack = true), "no_ack false"),
            (why(|stream| stream.allow_msg_counter = true), "counters"),
            (why(|stream| stream.retention = "workqueue".to_owned()), "workqueue"),
            (why(|stream| stream.retention = "interest".to_owned()), "retention limits"),
            (why(|stream| stream.max_bytes = 1), "discard new"),
            (why(|stream| stream.max_msgs = 1), "discard new"),
            (why(|stream| stream.allow_atomic = false), "allow_atomic"),
            (why(|stream| stream.allow_rollup_hdrs = false), "allow_rollup_hdrs"),
            (why(|stream| stream.deny_purge = true), "deny_purge"),
            (why(|stream| stream.max_age = 1), "allow_msg_ttl"),
            (why(|stream| drop(stream.subjects.pop())), "forebay.cursors.EVENTS.>"),
        ] {
            assert!(said.contains(words), "{words}: {said}");
        }
        let full = |stream: &mut StreamConfig| (stream.max_bytes, stream.discard) = (1, "new".to_owned());
        let aged = |stream: &mut StreamConfig| (stream.max_age, stream.allow_msg_ttl) = (1, true);
        assert_eq!((why(full), why(aged)), (String::new(), String::new()));
    }

    #[test]
    fn possible_losses_are_reported() {
        let warning = |storage: &str, num_replicas| {
            let stream = StreamConfig { storage: storage.to_owned(), num_replicas, ..stream() };
            judge(&stream, &config()).unwrap().warning
        };
        assert_eq!(warning("file", 3), None);
        for (storage, replicas, words) in
            [("file", 1, "sync_interval"), ("memory", 1, "restart"), ("memory", 3, "all servers")]
        {
            assert!(warning(storage, replicas).unwrap().contains(words), "{storage} {replicas}");
        }
    }

    #[test]
    fn versions_without_atomic_batches_are_recognised() {
        for (version, is_new) in [
            ("2.14.5", true),
            ("2.12.1", true),
            ("2.15.0-dev", true),
            ("3.0.0", true),
            ("2.12.0", false),
            ("2.9.10", false),
            ("", false),
        ] {
            assert_eq!(is_new_enough(version), is_new, "{version}");
        }
    }
}
