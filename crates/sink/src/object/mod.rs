//! Stores of whole objects: files of a directory, and what is like them. An object can't be added to, and once it has
//! its name it never changes.
//!
//! Once is once by the *manifest*: delivery fixes which events an object holds, its coding and its name, and makes
//! that durable before the first byte is written. Whatever fails, the same manifest is sent again, the same bytes are
//! written, and what is there already under the name is compared. A driver lists nothing, decides nothing and
//! remembers nothing.

mod apart;
mod codec;
mod content;
mod description;
pub mod directory;
mod exchange;
mod line;
mod lines;
mod manifest;
pub mod over_http;
mod parquet;
mod prefix;
pub mod read;
mod room;
mod writer;

use std::collections::BTreeSet;
use std::time::Duration;

pub use apart::Apart;
pub use codec::{Codec, UnknownCodec};
pub use content::{NoParts, Parts};
pub use exchange::{ObjectDownload, ObjectQuery, ObjectUpload};
pub use line::{Line, line_bytes};
pub use lines::Lines;
pub use manifest::Manifest;
pub use prefix::{InvalidPrefix, Prefix};

use crate::contract::make_visible;
use crate::{Batch, Mark, Reason, Refusal, Report, SinkError};
use content::OnePart;
use directory::Directory;
use room::Room;

/// How large objects are, and how they are coded: what delivery must know before it makes a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectRules {
    /// What stands in a line.
    pub line: Line,
    /// How an object is coded.
    pub codec: Codec,
    /// Bytes of lines, or of what would be lines, before they are coded, at which an object ends, unless one event alone is larger.
    pub bytes_max: u64,
    /// Events of an object.
    pub records_max: u64,
    /// How long the first event of an object waits for others.
    pub age_max: Duration,
    /// What their names begin with. For stores without directories.
    pub prefix: Prefix,
    /// What of a payload is an object of its own, if anything is. For stores over HTTP.
    pub apart: Option<Apart>,
}

/// A store of objects. Cheap to clone.
#[derive(Clone, Debug)]
pub enum ObjectStore {
    /// Files of a directory.
    Directory(Directory),
    /// A container of Swift, or a bucket of S3.
    OverHttp(over_http::OverHttp),
}

impl ObjectStore {
    /// How large objects are.
    #[must_use]
    pub fn rules(&self) -> ObjectRules {
        match self {
            Self::Directory(directory) => directory.rules(),
            Self::OverHttp(store) => store.rules(),
        }
    }

    /// Why an event with this payload can't be stored, if it can't. It must be left out of every manifest.
    #[must_use]
    pub fn refusal(&self, payload: &[u8]) -> Option<Reason> {
        let mut refusal = match self {
            Self::Directory(directory) => directory.refusal(payload),
            Self::OverHttp(store) => store.refusal(payload),
        };
        if let Some(reason) = &mut refusal {
            make_visible(reason);
        }
        refusal
    }

    /// Begins lines of an object of events of `shard` that are made while these are gathered, unless the store must have its objects made
    /// otherwise.
    #[must_use]
    pub fn lines(&self, shard: u16) -> Option<Lines> {
        Lines::new(&self.rules(), shard, self.room())
    }

    /// Whether to wait for objects that are on their way lets lines be made of the next: there is too little room for them now.
    #[must_use]
    pub fn lacks_room(&self) -> bool {
        let rules = self.rules();
        Lines::bytes_ahead(&rules, self.room()).is_some_and(|bytes| !self.room().has_ahead(bytes))
    }

    /// Whether it is files of this machine.
    #[must_use]
    pub const fn is_on_this_disk(&self) -> bool {
        matches!(self, Self::Directory(_))
    }

    /// Keeps no more in memory than the budgets say. To be called before the first write.
    pub fn shrink_to(&self, memory: &event::memory::Budgets) {
        self.room().shrink_to(memory);
    }

    /// The mark of what objects are kept in, which is made where there is none.
    pub(crate) async fn mark(&self) -> Result<Mark, SinkError> {
        match self {
            Self::Directory(directory) => directory.mark().await,
            Self::OverHttp(store) => store.mark().await,
        }
    }

    fn room(&self) -> &Room {
        match self {
            Self::Directory(directory) => directory.room(),
            Self::OverHttp(store) => store.room(),
        }
    }

    /// Writes the object of `manifest`, whose events `parts` gives, and gives `parts` back when the object is durable
    /// under its name. Where it is there already it is compared with what would be written.
    ///
    /// A future that is dropped before it ends leaves the object there as a whole or not at all.
    ///
    /// # Errors
    /// [`SinkError`] where it isn't known to be there: the same manifest with the same events is to be sent again.
    pub async fn put<P: Parts>(&self, manifest: &Manifest, parts: P) -> Result<P, SinkError> {
        let put = match self {
            Self::Directory(directory) => directory.put(manifest, parts).await,
            Self::OverHttp(store) => store.put(manifest, parts).await,
        };
        put.map_err(SinkError::visible)
    }

    /// The same store for those who read, which nobody waits for who writes.
    fn to_read(&self) -> read::ReadStore {
        match self {
            Self::Directory(directory) => read::ReadStore::Directory(directory.clone()),
            Self::OverHttp(store) => read::ReadStore::OverHttp(Box::new(store.to_read())),
        }
    }

    /// A batch that comes by itself is an object of its own, or one for each of its types, known by its lane and first position.
    pub(crate) async fn write(&self, batch: &Batch) -> Result<Report, SinkError> {
        let refusals = batch.records().enumerate();
        let refusals = refusals.filter_map(|(index, record)| Some((index, self.refusal(record.payload)?)));
        let refused: Vec<Refusal> = refusals.map(|(index, reason)| Refusal { index, reason }).collect();
        if !refused.is_empty() {
            return Ok(Report::Withheld { refused });
        }
        if batch.mark().is_some() {
            let mark = self.mark().await?;
            if !mark.is_expected(batch.mark()) {
                return Err(SinkError::OtherStore(mark));
            }
        }
        let (rules, run) = (self.rules(), batch.first()..=batch.last());
        for part in by_type(batch, &rules) {
            let Some(first) = part.get(0) else { continue };
            let (lane, type_name) = (batch.lane().clone(), first.type_name);
            let manifest = Manifest::new(lane, run.clone(), type_name, first.received_at, &rules, None, None);
            self.put(&manifest, OnePart::new(part.clone())).await?;
        }
        Ok(Report::Stored)
    }
}

/// The batch as a whole, or its events of each type where these are told apart.
fn by_type(batch: &Batch, rules: &ObjectRules) -> Vec<Batch> {
    if !rules.prefix.tells_types() {
        return vec![batch.clone()];
    }
    let types: BTreeSet<&str> = batch.records().map(|record| record.type_name).collect();
    let others = |name: &str| -> Vec<usize> {
        let records = batch.records().enumerate();
        records.filter(|(_, record)| record.type_name != name).map(|(index, _)| index).collect()
    };
    types.into_iter().map(|name| batch.without(&others(name))).collect()
}

#[cfg(test)]
mod tests {
    use event::{EventId, Lane, Origin};

    use super::*;
    use crate::{Record, Write};

    #[test]
    fn a_batch_is_an_object_for_each_type_where_these_are_told_apart() {
        let lane = Lane { origin: Origin([1; 16]), shard: 0, sink: "archive".into() };
        let mut batch = Batch::new(lane, 1);
        let block = bytes::Bytes::from_static(b"1ab");
        let text = |at: usize| std::str::from_utf8(&block[at..=at]).unwrap();
        for (sequence, name) in [(1, 1), (2, 2), (3, 1)] {
            let (id, type_name) = (EventId(u128::from(sequence).to_be_bytes()), text(name));
            let (source, payload, write) = (&text(0)[..0], &block[..1], Write::Insert);
            batch.push(
                &block,
                &Record { sequence, id, type_name, source, received_at: 0, event_time: None, write, payload },
            );
        }
        let sequences = |prefix: &str| -> Vec<Vec<u64>> {
            let prefix = prefix.parse().unwrap();
            let rules = ObjectRules {
                line: Line::Payload,
                codec: Codec::None,
                bytes_max: 1,
                records_max: 1,
                age_max: Duration::from_secs(1),
                prefix,
                apart: None,
            };
            let parts = by_type(&batch, &rules);
            parts.iter().map(|part| part.records().map(|record| record.sequence).collect()).collect()
        };
        assert_eq!(sequences("{day}/"), [[1, 2, 3]]);
        assert_eq!(sequences("{type}/"), [vec![1, 3], vec![2]]);
    }
}
