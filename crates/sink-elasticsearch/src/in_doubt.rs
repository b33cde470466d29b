//! Records that may have been sent before: the sink looks for them before it creates them, since the index that is written to may be another
//! one by now. The batch says which these are, so that each process that gets it decides alike.

use super::config::{Conflict, ElasticsearchConfig, Target};
use sink::{Batch, Record, Write};

/// A document, and what it can be deleted by as long as it has not changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Made {
    /// The index: of a data stream or an alias the one behind it.
    pub(super) index: String,
    /// Its `_seq_no`.
    pub(super) number: u64,
    /// Its `_primary_term`.
    pub(super) term: u64,
}

/// The indices of the records that may have been sent before, of those that are created. A record that replaces a document isn't looked
/// for: its place is the index that is written to.
pub(super) fn in_doubt(config: &ElasticsearchConfig, batch: &Batch) -> Vec<usize> {
    let is_in_doubt = |record: &Record<'_>| record.sequence <= batch.again() && is_created(config, record);
    batch.records().enumerate().filter(|(_, record)| is_in_doubt(record)).map(|(at, _)| at).collect()
}

/// Whether a record becomes a document by `create`.
fn is_created(config: &ElasticsearchConfig, record: &Record<'_>) -> bool {
    let keeps = matches!(config.conflict, Conflict::DeadLetter | Conflict::Ignore);
    config.target == Target::DataStream || (keeps && record.write == Write::Insert)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use event::{EventId, Lane, Origin};

    use super::*;

    fn batch(write: Write) -> Batch {
        let mut batch = Batch::new(Lane { origin: Origin([1; 16]), shard: 0, sink: "search".into() }, 1);
        for sequence in 1..=3 {
            let block = Bytes::from("access{}");
            let record = Record {
                sequence,
                id: EventId([9; 16]),
                type_name: std::str::from_utf8(&block[..6]).unwrap(),
                source: "",
                received_at: 0,
                event_time: None,
                write,
                payload: &block[6..],
            };
            batch.push(&block, &record);
        }
        batch
    }

    #[test]
    fn a_record_that_was_handed_to_the_sink_before_is_in_doubt_if_it_is_created() {
        let mut config = super::super::tests::config();
        let (inserts, results) = (batch(Write::Insert), batch(Write::Upsert(1)));
        assert!(in_doubt(&config, &inserts).is_empty());
        assert_eq!(in_doubt(&config, &inserts.clone().sent_after(0, 2)), [0, 1]);
        assert!(in_doubt(&config, &results.clone().sent_after(0, 2)).is_empty(), "it replaces something");
        config.conflict = Conflict::Overwrite;
        assert!(in_doubt(&config, &inserts.sent_after(0, 2)).is_empty());
        config.target = Target::DataStream;
        assert_eq!(in_doubt(&config, &results.sent_after(0, 2)), [0, 1], "each revision is created there");
    }
}
