//! A record as arguments of a script: its key, and at most three more values.

use std::borrow::Cow;

use json::JsonPointer;
use json::text::scalar_text;

use super::config::{RedisConfig, Structure, is_own};
use sink::{Record, Write};

/// The maximum of bytes of a hash's field.
const FIELD_BYTES_MAX: usize = 64 * 1024;

/// A record that can be written.
#[derive(Debug)]
pub(super) struct Row<'a> {
    /// Its index within the batch.
    pub(super) index: usize,
    pub(super) sequence: u64,
    pub(super) key: String,
    /// Its name: an id, or a hash's field.
    pub(super) name: Cow<'a, str>,
    /// Its order among older and newer ones.
    pub(super) order: String,
    /// The value that is written.
    pub(super) value: Cow<'a, [u8]>,
}

impl<'a> Row<'a> {
    /// The record as a row.
    ///
    /// # Errors
    /// Why it can't be a row.
    pub(super) fn new(config: &RedisConfig, index: usize, record: &Record<'a>) -> Result<Self, String> {
        let key = config.key_of(record);
        if is_own(&key) {
            return Err(format!("its key would be {key:?}, but keys that begin with `forebay:` belong to Forebay"));
        }
        let mut row = Self {
            index,
            sequence: record.sequence,
            key,
            name: "".into(),
            order: String::new(),
            value: record.payload.into(),
        };
        match &config.structure {
            Structure::List { .. } | Structure::Set | Structure::Publish => {}
            Structure::Stream { .. } | Structure::Hash | Structure::Strings => {
                row.name = record.id.to_string().into();
                row.order = revision(record.write).map(|revision| revision.to_string()).unwrap_or_default();
            }
            Structure::Latest { field } => {
                row.name = text_at(field, record)?;
                row.order = order(record);
            }
            Structure::Counter { field, by } => {
                row.name = text_at(field, record)?;
                row.order = revision(record.write).map_or_else(String::new, |of| format!("{} {of}", record.id));
                let amount = by.as_ref().map_or(Ok(1), |by| whole_number(by, record))?;
                row.value = amount.to_string().into_bytes().into();
            }
        }
        Ok(row)
    }

    /// The approximate number of bytes that it adds to a command.
    pub(super) fn bytes(&self) -> usize {
        const LENGTHS: usize = 64;
        self.name.len() + self.order.len() + self.value.len() + LENGTHS
    }
}

const fn revision(write: Write) -> Option<u64> {
    match write {
        Write::Insert => None,
        Write::Upsert(revision) => Some(revision),
    }
}

/// A text that sorts later, byte by byte, for a later record: by when it happened, or else was received, then by
/// revision.
fn order(record: &Record<'_>) -> String {
    // Times before 1970 sort first.
    let time = record.time().cast_unsigned() ^ (1 << 63);
    format!("{time:020} {:020}", revision(record.write).unwrap_or(0))
}

fn at<'a>(pointer: &JsonPointer, record: &Record<'a>) -> Result<&'a str, String> {
    let json = std::str::from_utf8(record.payload).map_err(|_| "its payload isn't UTF-8".to_owned())?;
    pointer.lookup(json).ok_or_else(|| format!("there is no value at {pointer}"))
}

/// The text of a string, a number, `true` or `false`.
fn text_at<'a>(pointer: &JsonPointer, record: &Record<'a>) -> Result<Cow<'a, str>, String> {
    let raw = at(pointer, record)?;
    if raw == "null" {
        return Err(format!("there is no value at {pointer}"));
    }
    let text = scalar_text(raw).ok_or_else(|| format!("the value at {pointer} can't be a field name"))?;
    if text.len() > FIELD_BYTES_MAX {
        return Err(format!("the value at {pointer} is too long for a field name"));
    }
    Ok(text)
}

/// An integer that can be subtracted again.
fn whole_number(pointer: &JsonPointer, record: &Record<'_>) -> Result<i64, String> {
    let number = at(pointer, record)?.parse().ok().filter(|number| *number != i64::MIN);
    number.ok_or_else(|| format!("the value at {pointer} isn't a 64-bit integer"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(time: i64, write: Write) -> Record<'static> {
        Record {
            sequence: 1,
            id: event::EventId([0; 16]),
            type_name: "access",
            source: "",
            received_at: 7,
            event_time: Some(time),
            write,
            payload: br#"{"s": "\u00e9", "n": -12, "f": 1.5, "o": {}, "z": null}"#,
        }
    }

    #[test]
    fn later_record_sorts_later() {
        let of = |time, revision| order(&record(time, Write::Upsert(revision)));
        let ascending =
            [of(i64::MIN, 5), of(-1, 5), of(0, 0), of(0, 9), of(0, 10), of(1, 0), of(10, 0), of(i64::MAX, u64::MAX)];
        assert!(ascending.is_sorted_by(|one, other| one < other), "{ascending:?}");
    }

    #[test]
    fn fields_and_amounts_come_from_scalars() {
        let record = record(0, Write::Insert);
        let text = |pointer: &str| text_at(&pointer.parse().unwrap(), &record).map(Cow::into_owned);
        assert_eq!((text("/s"), text("/n")), (Ok("é".into()), Ok("-12".into())));
        for wrong in ["/o", "/z", "/none", ""] {
            assert!(text(wrong).is_err(), "{wrong}");
        }
        let number = |pointer: &str| whole_number(&pointer.parse().unwrap(), &record);
        assert_eq!(number("/n"), Ok(-12));
        for wrong in ["/s", "/f", "/o", "/none"] {
            assert!(number(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn event_never_gets_one_of_forebays_keys() {
        let config = |key: &str| RedisConfig { key: key.parse().unwrap(), ..crate::slot_cursors::tests::config() };
        let record = Record { type_name: "forebay", ..record(0, Write::Insert) };
        for key in ["{type}:{type}:cursors", "{type}:x"] {
            let refused = Row::new(&config(key), 0, &record).map(|row| row.key);
            assert!(refused.as_ref().is_err_and(|why| why.contains("belong to Forebay")), "{key}: {refused:?}");
        }
        assert!(Row::new(&config("app:{type}:x"), 0, &record).is_ok());
    }
}
