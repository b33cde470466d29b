//! A record as a message: its subject, and its headers, which are the same in every attempt.

use text::rfc3339;

use super::preflight::Durability;
use super::subject::SubjectPattern;
use sink::{Fault, Record, Write};

/// An event's position at its gateway.
pub(super) const POSITION: &str = "Forebay-Position";
/// The maximum of bytes of the headers that a batch adds to a message.
const BATCH_BYTES_MAX: usize = 128;

/// A record that can be published.
#[derive(Debug)]
pub(super) struct Row<'a> {
    pub(super) sequence: u64,
    pub(super) subject: String,
    /// Lines of headers.
    pub(super) headers: String,
    pub(super) payload: &'a [u8],
}

impl<'a> Row<'a> {
    /// The record of this shard as a message.
    ///
    /// # Errors
    /// Why the stream can't accept it, and what is at fault.
    pub(super) fn new(
        pattern: &SubjectPattern,
        durability: &Durability,
        shard: u16,
        record: &Record<'a>,
    ) -> Result<Self, (Fault, String)> {
        let subject = pattern.of(record);
        if !durability.accepts(&subject) {
            // The stream may no longer listen to any of the subjects.
            return Err((Fault::Unclear, format!("the stream doesn't listen to {subject}: add it to its subjects")));
        }
        let row = Self { sequence: record.sequence, subject, headers: headers(shard, record), payload: record.payload };
        let (bytes, max) = (row.bytes(), durability.message_bytes_max);
        if bytes > max {
            let why = format!(
                "with its headers it has {bytes} bytes, and the server accepts {max}: raise its `max_payload`, or the \
                 stream's `max_msg_size`"
            );
            return Err((Fault::Record, why));
        }
        Ok(row)
    }

    /// The maximum of bytes of its message, including headers.
    pub(super) fn bytes(&self) -> usize {
        nats::length_of_headers(self.headers.len() + BATCH_BYTES_MAX) + self.payload.len()
    }
}

fn headers(shard: u16, record: &Record<'_>) -> String {
    let time = |time: i64| String::from_utf8_lossy(&rfc3339::text(time)).into_owned();
    let (id, revision) = match record.write {
        Write::Insert => (record.id.to_string(), None),
        Write::Upsert(revision) => (format!("{}-{revision}", record.id), Some(revision.to_string())),
    };
    let lines = [
        ("Nats-Msg-Id", Some(id)),
        ("Forebay-Type", Some(record.type_name.to_owned())),
        ("Forebay-Source", Some(record.source.to_owned()).filter(|source| is_word(source))),
        ("Forebay-Received-At", Some(time(record.received_at))),
        ("Forebay-Event-Time", record.event_time.map(time)),
        ("Forebay-Revision", revision),
        (POSITION, Some(format!("{shard}:{}", record.sequence))),
    ];
    let line = |(name, value): (&str, Option<String>)| value.map(|value| format!("{name}: {value}\r\n"));
    lines.into_iter().filter_map(line).collect()
}

/// Whether a text is allowed in a header. Names of sources are.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(payload: &[u8]) -> Record<'_> {
        Record {
            sequence: 7,
            id: event::EventId([0; 16]),
            type_name: "access",
            source: "shop",
            received_at: 1_760_000_000_000_000,
            event_time: Some(1_760_000_000_000_001),
            write: Write::Upsert(3),
            payload,
        }
    }

    fn durability(message_bytes_max: usize) -> Durability {
        let subjects = vec!["events.*".to_owned()];
        Durability { subjects, message_bytes_max, has_age: false, may_be_torn: false, warning: None }
    }

    #[test]
    fn headers_contain_id_source_and_times() {
        assert_eq!(
            headers(2, &record(b"1")),
            "Nats-Msg-Id: 00000000-0000-0000-0000-000000000000-3\r\nForebay-Type: access\r\nForebay-Source: shop\r\n\
             Forebay-Received-At: 2025-10-09T08:53:20.000000Z\r\nForebay-Event-Time: 2025-10-09T08:53:20.000001Z\r\n\
             Forebay-Revision: 3\r\nForebay-Position: 2:7\r\n"
        );
        let plain = Record { source: "a\r\nb", event_time: None, write: Write::Insert, ..record(b"1") };
        assert_eq!(
            headers(2, &plain),
            "Nats-Msg-Id: 00000000-0000-0000-0000-000000000000\r\nForebay-Type: access\r\n\
             Forebay-Received-At: 2025-10-09T08:53:20.000000Z\r\nForebay-Position: 2:7\r\n"
        );
    }

    #[test]
    fn unsuitable_event_is_found_before_sending() {
        let pattern: SubjectPattern = "events.{type}".parse().unwrap();
        let row = |record: &Record<'_>, max| Row::new(&pattern, &durability(max), 2, record).map(|row| row.subject);
        assert_eq!(row(&record(b"1"), 1_000).as_deref(), Ok("events.access"));
        let dotted = Record { type_name: "access.hits", ..record(b"1") };
        assert!(row(&dotted, 1_000).unwrap_err().1.contains("events.access.hits"));
        assert!(row(&record(&[b'1'; 1_000]), 1_000).unwrap_err().1.contains("accepts 1000"));
    }
}
