//! Splits a batch that comes without a manifest into the events of one object each.

use std::collections::BTreeSet;

use ::sink::{Batch, Record};

use crate::{ObjectFormat, Period, Portion};

/// The type and the period of an event, if objects differ by them.
type Key<'a> = (Option<&'a str>, Option<Period>);

/// The batch as a whole, or its events of each type and period if objects differ by these.
pub(crate) fn of(batch: &Batch, rules: &ObjectFormat) -> Vec<Batch> {
    let keys: BTreeSet<Key<'_>> = batch.records().map(|record| key(&record, rules)).collect();
    if keys.len() < 2 {
        return vec![batch.clone()];
    }
    let others = |wanted: &Key<'_>| -> Vec<usize> {
        let records = batch.records().enumerate();
        records.filter(|(_, record)| key(record, rules) != *wanted).map(|(index, _)| index).collect()
    };
    keys.iter().map(|key| batch.without(&others(key))).collect()
}

/// How the name of an object shows its events, of which this is the first one.
pub(crate) fn shown<'a>(first: &Record<'a>, rules: &ObjectFormat) -> Portion<'a> {
    let time = if rules.prefix.follows_events() { first.naming_time() } else { first.received_at };
    Portion { time, ..Portion::received(first.type_name, first.received_at) }
}

fn key<'a>(record: &Record<'a>, rules: &ObjectFormat) -> Key<'a> {
    let type_name = rules.prefix.has_type().then_some(record.type_name);
    (type_name, rules.prefix.period(record.naming_time()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use event::{EventId, Lane, Origin};

    use super::*;
    use crate::{Codec, Line, SideFolder};
    use ::sink::Write;

    const HOUR: i64 = 3_600_000_000;

    fn batch() -> Batch {
        let lane = Lane { origin: Origin([1; 16]), shard: 0, sink: "archive".into() };
        let mut batch = Batch::new(lane, 1);
        let block = bytes::Bytes::from_static(b"1ab");
        let text = |at: usize| std::str::from_utf8(&block[at..=at]).unwrap();
        // The third event's time is years ahead: names follow it by a day at most.
        let times = [(1, Some(-HOUR)), (2, None), (1, Some(900 * 24 * HOUR)), (1, Some(HOUR)), (1, Some(-1))];
        for (sequence, (name, event_time)) in (1..).zip(times) {
            let (id, type_name) = (EventId(u128::from(sequence).to_be_bytes()), text(name));
            let (source, payload, write) = (&text(0)[..0], &block[..1], Write::Insert);
            batch.push(&block, &Record { sequence, id, type_name, source, received_at: 0, event_time, write, payload });
        }
        batch
    }

    #[test]
    fn batch_is_split_by_type_and_period() {
        let (batch, plain) = (batch(), |text: &str| text.parse::<crate::Prefix>().unwrap());
        for (prefix, expected) in [
            (plain("{day}/"), vec![vec![1, 2, 3, 4, 5]]),
            (plain("{type}/"), vec![vec![1, 3, 4, 5], vec![2]]),
            (plain("{day}/").by_event_time(), vec![vec![1, 5], vec![2, 4], vec![3]]),
            (plain("{type}/{day}/").by_event_time(), vec![vec![1, 5], vec![4], vec![3], vec![2]]),
            (plain("{hour}/").by_event_time(), vec![vec![2, 3], vec![4], vec![1, 5]]),
        ] {
            let rules = ObjectFormat {
                line: Line::Payload,
                codec: Codec::None,
                bytes_max: 1,
                records_max: 1,
                age_max: Duration::from_secs(1),
                prefix,
                apart: None,
                manifests: SideFolder::NONE,
            };
            let parts = of(&batch, &rules);
            let sequences: Vec<Vec<u64>> =
                parts.iter().map(|part| part.records().map(|record| record.sequence).collect()).collect();
            assert_eq!(sequences, expected, "{}", rules.prefix);
        }
    }
}
