//! Which events a query for a page chooses, and from which store.

use std::sync::Arc;

use event::read::{Bookmark, Filter, ReadOrder, StoreReader, Wanted};
use event::{EventId, FURTHER_VALUES_FROM, KeyedIds, TypeName};
use limits::BATCH_RECORDS_MAX;
use text::{duration, rfc3339};

use super::cursor::Belonging;
use super::lookup::{nothing_to_read, store_of_page, type_name};
use super::parameters::{Parameters, bad};
use crate::error_code::ErrorCode;
use crate::event_types::{StoreReaders, TypeRegistry};
use crate::ingest::{DEFAULT_TYPE, check_key};
use crate::problem::{Problem, Refused};

/// The parameter of the admin port that names the store.
pub(super) const SINK: &str = "sink";

/// Which events, and from which store.
pub(super) struct Choice {
    pub(super) wanted: Wanted,
    /// How long before the first page the events begin, in microseconds, if `since` is an age.
    age: Option<i64>,
    /// The ids under which the key of these events is remembered: of a single event, and of a batch of one type or of several, whole or in
    /// part.
    pub(super) key: Option<[EventId; 5]>,
    pub(super) reader: Arc<dyn StoreReader>,
    /// The texts of the source and the condition that narrow it down: they belong to its cursors.
    pub(super) filter: Option<(String, String)>,
}

impl Choice {
    /// The choice of a query; `usual` is the order of a query without one. The parameter `sink` names one of `sinks`.
    pub(super) fn of(
        types: &TypeRegistry,
        parameters: &Parameters,
        source: &str,
        usual: ReadOrder,
        sinks: &[Arc<dyn StoreReader>],
    ) -> Result<Self, Refused> {
        let type_name = type_name(parameters)?;
        let named = parameters.text(SINK).map(|name| named(sinks, name)).transpose()?;
        if let Some(key) = parameters.text("key") {
            parameters.without(&["since", "until", "order"], "cannot be combined with `key`")?;
            return Self::of_key(types, parameters, type_name, key, source, named);
        }
        let reader = match (named, &type_name) {
            (Some(reader), _) => reader,
            (None, Some(name)) => store_of_page(&types.readers_of(name)?, parameters)?,
            (None, None) => store_of_page(&the_only_readers(types)?, parameters)?,
        };
        let (since, age) = match parameters.with("since", since)? {
            None => (None, None),
            Some(Since::Time(time)) => (Some(time), None),
            Some(Since::Age(age)) => (Some(clock::unix_microseconds().saturating_sub(age).max(0)), Some(age)),
        };
        let until = parameters.with("until", rfc3339::parse)?;
        let order = parameters.with("order", order)?.unwrap_or(usual);
        let filter = Filter { type_name, since, until, order };
        Ok(Self { wanted: Wanted::Stored(filter), age, key: None, reader, filter: None })
    }

    /// All events of a key: number 0 for a single event. For a batch, the first values of its lines, and then all others.
    fn of_key(
        types: &TypeRegistry,
        parameters: &Parameters,
        type_name: Option<TypeName>,
        key: &str,
        source: &str,
        named: Option<Arc<dyn StoreReader>>,
    ) -> Result<Self, Refused> {
        check_key(key.as_bytes(), "`key`")?;
        let of_default = || TypeName::new(DEFAULT_TYPE).map_err(|error| bad(error.to_string()));
        let name = type_name.map_or_else(of_default, Ok)?;
        let ids = KeyedIds::new(source, &name, key.as_bytes());
        let last = FURTHER_VALUES_FROM + u32::try_from(BATCH_RECORDS_MAX).unwrap_or_default();
        let [of_type, of_several] = [Some(&name), None].map(|name| KeyedIds::of_batch(source, name, key.as_bytes()));
        Ok(Self {
            wanted: Wanted::Ids { first: ids.id(0), last: ids.id(last) },
            age: None,
            key: Some([ids.id(0), of_type, of_type.in_part(), of_several, of_several.in_part()]),
            reader: match named {
                Some(reader) => reader,
                None => store_of_page(&types.readers_of(&name)?, parameters)?,
            },
            filter: None,
        })
    }

    fn belonging(&self) -> Belonging<'_> {
        let filter = self.filter.as_ref().map(|(source, condition)| (&**source, &**condition));
        Belonging { sink: self.reader.name(), wanted: &self.wanted, age: self.age, filter }
    }

    /// The cursor of the next page. If `since` is an age, all pages begin where the first one does.
    pub(super) fn cursor(&self, bookmark: &Bookmark) -> String {
        match (&self.wanted, self.age) {
            (Wanted::Stored(Filter { since: Some(since), .. }), Some(_)) => {
                self.belonging().write(&Bookmark([&since.to_be_bytes(), &bookmark.0[..]].concat()))
            }
            _ => self.belonging().write(bookmark),
        }
    }

    /// Resumes after a cursor.
    pub(super) fn resume(&mut self, cursor: &str) -> Result<Bookmark, Refused> {
        let Bookmark(bytes) = self.belonging().read(cursor)?;
        match (&mut self.wanted, self.age, bytes.split_first_chunk()) {
            (Wanted::Stored(filter), Some(_), Some((since, bookmark))) => {
                filter.since = Some(i64::from_be_bytes(*since));
                Ok(Bookmark(bookmark.to_vec()))
            }
            _ => Ok(Bookmark(bytes)),
        }
    }
}

/// The time from which events are requested.
enum Since {
    Time(i64),
    /// Microseconds before the first page.
    Age(i64),
}

fn since(text: &str) -> Result<Since, String> {
    match (rfc3339::parse(text), duration::parse(text)) {
        (Ok(time), _) => Ok(Since::Time(time)),
        (_, Ok(age)) => Ok(Since::Age(i64::try_from(age.as_micros()).unwrap_or(i64::MAX))),
        (Err(no_time), Err(no_length)) => Err(format!("{no_time}; or, as an age, {no_length}")),
    }
}

fn order(text: &str) -> Result<ReadOrder, String> {
    match text {
        "asc" => Ok(ReadOrder::OldestFirst),
        "desc" => Ok(ReadOrder::NewestFirst),
        _ => Err("expected asc (oldest first) or desc (newest first)".to_owned()),
    }
}

/// The reader of this name.
fn named(sinks: &[Arc<dyn StoreReader>], name: &str) -> Result<Arc<dyn StoreReader>, Refused> {
    sinks.iter().find(|reader| **reader.name() == *name).cloned().ok_or_else(|| {
        let names: Vec<&str> = sinks.iter().map(|reader| &**reader.name()).collect();
        let detail =
            format!("`sink`: {name} is no readable sink of the configuration: use one of [{}]", names.join(", "));
        Problem::boxed(ErrorCode::NotReadable, detail)
    })
}

/// Pages go through one sink: there is no order over several.
fn the_only_readers(types: &TypeRegistry) -> Result<StoreReaders, Refused> {
    let mut readers = types.readers();
    match (readers.pop(), readers.is_empty()) {
        (Some(only), true) => Ok(only),
        (Some(_), false) => {
            Err(bad("events are read from several sinks: choose one with the parameter `type`".to_owned()))
        }
        (None, _) => Err(nothing_to_read()),
    }
}
