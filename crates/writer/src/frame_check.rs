//! Checks the records of a frame as a gateway's intake checks events: a writer trusts no gateway. So a gateway can't make a store use a key, a
//! subject, a path or a line of its choice.

use access::{Name, contains_token};
use event::TypeName;
use limits::DELIVERY_RECORDS_MAX;
use sink::{Batch, Record, Write};
use text::calendar::TIMES;
use writer_protocol::wire;

use crate::answer::Refused;
use crate::request_parts::bad_request;

/// Positions and revisions have 63 bits: stores keep them as signed numbers.
const NUMBER_MAX: u64 = i64::MAX.cast_unsigned();

/// # Errors
/// A record is invalid. Nothing of the batch may be stored.
pub(super) fn check(batch: &Batch) -> Result<(), Refused> {
    if batch.len() > DELIVERY_RECORDS_MAX {
        let detail = format!(
            "the batch has {} records, and at most {DELIVERY_RECORDS_MAX} are allowed: run the same release of \
             gateway and writer",
            batch.len()
        );
        return Err(bad_request(detail));
    }
    if batch.floor() > NUMBER_MAX {
        return Err(bad_request(format!("the header {} is above {NUMBER_MAX}", wire::MIN_POSITION)));
    }
    if batch.last() > NUMBER_MAX {
        return Err(bad_request(format!("the batch ends after position {NUMBER_MAX}")));
    }
    let mut faults = batch.records().filter_map(|record| Some((record.sequence, fault(&record)?)));
    faults.next().map_or(Ok(()), |(sequence, fault)| {
        Err(bad_request(format!("the record at position {sequence} is invalid: {fault}")))
    })
}

/// Why an intake would reject the record.
fn fault(record: &Record<'_>) -> Option<String> {
    if let Err(error) = TypeName::check(record.type_name) {
        return Some(format!("its type: {error}"));
    }
    if contains_token(record.type_name) || contains_token(record.source) {
        return Some("its type or source contains a token".to_owned());
    }
    if !record.source.is_empty() && record.source.parse::<Name>().is_err() {
        return Some("its source is not a valid name".to_owned());
    }
    if let Err(error) = json::check(record.payload) {
        return Some(format!("its payload: {error}"));
    }
    // A clock before 1970 counts as 1970.
    if !(0..=*TIMES.end()).contains(&record.received_at) {
        return Some("its time of receipt is not in the years 1970 to 9999".to_owned());
    }
    if record.event_time.is_some_and(|time| !TIMES.contains(&time)) {
        return Some("its event time is not in the years 0 to 9999".to_owned());
    }
    match record.write {
        Write::Upsert(revision) if revision > NUMBER_MAX => Some(format!("its revision is above {NUMBER_MAX}")),
        Write::Upsert(_) | Write::Insert => None,
    }
}
