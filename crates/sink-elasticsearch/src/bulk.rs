//! A `_bulk` request: two lines for each document, the action and the content.

use std::io::Write;

use super::config::{DocumentConflictPolicy, ElasticsearchConfig, IndexTarget};
use super::mapping;
use sink::envelope::write_text;
use sink::{Batch, Record, Write as Kind};

/// Bytes of an action's line, and of a document without its payload: index, id, time.
const FRAME_BYTES: usize = 256;

/// The version of a document that was created and never changed.
pub(super) const EVENT_VERSION: u64 = 1;
/// Versions have 63 bits.
const REVISION_MAX: u64 = i64::MAX.cast_unsigned() - EVENT_VERSION - 1;

/// Splits a batch into requests: the indices of each request's records, without those at `left_out`, which ascend.
pub(super) fn parts(batch: &Batch, left_out: &[usize], request_bytes: usize) -> Vec<Vec<usize>> {
    let (mut parts, mut part, mut bytes) = (Vec::new(), Vec::new(), 0);
    for (at, record) in batch.records().enumerate().filter(|(at, _)| left_out.binary_search(at).is_err()) {
        let more = record.payload.len() + FRAME_BYTES;
        if !part.is_empty() && bytes + more > request_bytes {
            parts.push(std::mem::take(&mut part));
            bytes = 0;
        }
        part.push(at);
        bytes += more;
    }
    if !part.is_empty() {
        parts.push(part);
    }
    parts
}

/// The body of a request with these records.
pub(super) fn body(config: &ElasticsearchConfig, batch: &Batch, part: &[usize]) -> Vec<u8> {
    let records = part.iter().filter_map(|at| batch.get(*at));
    let bytes: usize = records.clone().map(|record| record.payload.len() + FRAME_BYTES).sum();
    let mut body = Vec::with_capacity(bytes);
    for record in records {
        write_entry(&mut body, config, batch.lane().shard, &record);
    }
    body
}

/// Writes the line of the action, and the line of the content.
fn write_entry(body: &mut Vec<u8>, config: &ElasticsearchConfig, shard: u16, record: &Record<'_>) {
    let (index, id) = (config.index.of(record), document_id(config.target, record));
    let mut action = |verb: &str, more: &str| {
        // Writing to memory can't fail.
        let _ = write!(body, r#"{{"{verb}":{{"_index":"#);
        write_text(body, index.as_bytes());
        let _ = write!(body, r#","_id":"#);
        write_text(body, id.as_bytes());
        let _ = writeln!(body, "{more}}}}}");
    };
    let (before, after): (&[u8], &[u8]) = match (record.write, config.target, config.conflict) {
        (_, IndexTarget::DataStream, _)
        | (Kind::Insert, _, DocumentConflictPolicy::DeadLetter | DocumentConflictPolicy::Ignore) => {
            action("create", "");
            (b"", b"\n")
        }
        (Kind::Insert, IndexTarget::Indices, DocumentConflictPolicy::Overwrite) => {
            action("index", "");
            (b"", b"\n")
        }
        (Kind::Insert, IndexTarget::Indices, DocumentConflictPolicy::Merge) => {
            action("update", r#","retry_on_conflict":3"#);
            (br#"{"doc":"#, b",\"doc_as_upsert\":true}\n")
        }
        (Kind::Upsert(revision), IndexTarget::Indices, _) => {
            let version = version(revision);
            action("index", &format!(r#","version":{version},"version_type":"external""#));
            (b"", b"\n")
        }
    };
    body.extend_from_slice(before);
    mapping::write(body, config, shard, record);
    body.extend_from_slice(after);
}

/// The id of a record's document. In a data stream each revision has a separate one.
pub(super) fn document_id(target: IndexTarget, record: &Record<'_>) -> String {
    match (record.write, target) {
        (Kind::Upsert(revision), IndexTarget::DataStream) => format!("{}-{revision}", record.id),
        (Kind::Insert, _) | (Kind::Upsert(_), IndexTarget::Indices) => record.id.to_string(),
    }
}

/// The document of an event has version 1, and that of a result's oldest revision the next one, so the versions differ.
fn version(revision: u64) -> u64 {
    revision.min(REVISION_MAX) + EVENT_VERSION + 1
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use event::{EventId, Lane, Origin};

    use super::*;

    fn batch(payloads: &[(&str, Kind)]) -> Batch {
        let mut batch = Batch::new(Lane { origin: Origin([1; 16]), shard: 2, sink: "search".into() }, 1);
        for (sequence, (payload, write)) in (1..).zip(payloads) {
            let block = Bytes::from(format!("access{payload}"));
            let record = Record {
                sequence,
                id: EventId([u8::try_from(sequence).unwrap(); 16]),
                type_name: std::str::from_utf8(&block[..6]).unwrap(),
                source: "",
                received_at: 0,
                event_time: None,
                write: *write,
                payload: &block[6..],
            };
            batch.push(&block, &record);
        }
        batch
    }

    #[test]
    fn request_ends_when_full() {
        let large = "1".repeat(1_000);
        let batch = batch(&[
            ("1", Kind::Insert),
            ("2", Kind::Insert),
            (&large, Kind::Insert),
            ("3", Kind::Insert),
            ("4", Kind::Insert),
        ]);
        assert_eq!(parts(&batch, &[], 600), [vec![0, 1], vec![2], vec![3, 4]]);
        assert_eq!(parts(&batch, &[], 1), [[0], [1], [2], [3], [4]]);
        assert_eq!(parts(&batch, &[1, 4], 1 << 20), [[0, 2, 3]]);
        assert!(parts(&batch, &[0, 1, 2, 3, 4], 1).is_empty());
    }

    #[test]
    fn events_are_created_and_results_have_versions() {
        let batch = batch(&[("{\n}", Kind::Insert), ("{}", Kind::Upsert(7))]);
        let mut config = super::super::tests::config();
        let body_of = |config: &_| String::from_utf8(body(config, &batch, &[0, 1])).unwrap();
        let (one, two) = ("01010101-0101-0101-0101-010101010101", "02020202-0202-0202-0202-020202020202");
        let document = r#"{"@timestamp":"1970-01-01T00:00:00.000000Z"}"#;
        let create = format!("{{\"create\":{{\"_index\":\"of-access\",\"_id\":\"{one}\"}}}}\n{document}\n");
        let version = r#""version":9,"version_type":"external""#;
        let index = format!("{{\"index\":{{\"_index\":\"of-access\",\"_id\":\"{two}\",{version}}}}}\n{document}\n");
        assert_eq!(body_of(&config), create.clone() + &index);
        config.target = IndexTarget::DataStream;
        let again = format!("{{\"create\":{{\"_index\":\"of-access\",\"_id\":\"{two}-7\"}}}}\n{document}\n");
        assert_eq!(body_of(&config), create + &again);
        config = super::super::tests::config();
        config.conflict = DocumentConflictPolicy::Overwrite;
        assert!(
            body_of(&config).starts_with("{\"index\":{\"_index\":\"of-access\",\"_id\":\"01"),
            "{}",
            body_of(&config)
        );
        config.conflict = DocumentConflictPolicy::Merge;
        let action = format!("{{\"_index\":\"of-access\",\"_id\":\"{one}\",\"retry_on_conflict\":3}}");
        let merge = format!("{{\"update\":{action}}}\n{{\"doc\":{document},\"doc_as_upsert\":true}}\n");
        assert_eq!(body_of(&config), merge + &index, "results have versions with any rule for events");
    }

    #[test]
    fn repeated_id_in_a_batch_is_detected() {
        assert!(!batch(&[("1", Kind::Insert), ("2", Kind::Insert)]).has_repetitions());
        let mut twice = batch(&[("1", Kind::Insert)]);
        let block = Bytes::from("access2");
        let record = Record { sequence: 9, ..record_of(&block) };
        twice.push(&block, &record);
        assert!(twice.has_repetitions());
    }

    fn record_of(block: &Bytes) -> Record<'_> {
        Record {
            sequence: 2,
            id: EventId([1; 16]),
            type_name: std::str::from_utf8(&block[..6]).unwrap(),
            source: "",
            received_at: 0,
            event_time: None,
            write: Kind::Insert,
            payload: &block[6..],
        }
    }
}
