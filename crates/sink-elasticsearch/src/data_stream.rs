//! Data streams are made before the first document. Otherwise the store makes a plain index where no template says that a name is a
//! data stream, and answers as if all was well.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use sink::Batch;

use super::config::{ElasticsearchConfig, IndexTarget};
use super::error::{Failure, words};
use super::server::Server;

/// Names that are remembered. Beyond that they are asked for again.
const KNOWN_MAX: usize = 4096;

/// The names that are known to be data streams.
#[derive(Debug, Default)]
pub(super) struct DataStreams {
    known: Mutex<HashSet<String>>,
}

/// What the store knows of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Stream,
    None,
    /// The user may not look.
    Hidden,
}

#[derive(Deserialize)]
struct Described {
    data_streams: Vec<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct Answer {
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    create: Option<Created>,
}

#[derive(Deserialize)]
struct Created {
    #[serde(default, rename = "_index")]
    index: String,
    status: u16,
}

impl DataStreams {
    /// Forgets all names.
    pub(super) fn forget(&self) {
        self.known().clear();
    }

    /// Makes the data stream of a configuration whose events all have the same one.
    pub(super) async fn prepare(&self, config: &ElasticsearchConfig, server: &Server) -> Result<(), Failure> {
        match config.index.only_name().filter(|_| config.target == IndexTarget::DataStream) {
            Some(name) => self.ensure(server, name).await,
            None => Ok(()),
        }
    }

    /// Makes the data streams of a batch that aren't there.
    pub(super) async fn prepare_for(
        &self,
        config: &ElasticsearchConfig,
        server: &Server,
        batch: &Batch,
    ) -> Result<(), Failure> {
        if config.target != IndexTarget::DataStream {
            return Ok(());
        }
        if config.index.only_name().is_some() {
            return self.prepare(config, server).await;
        }
        let names: HashSet<String> = batch.records().map(|record| config.index.of(&record)).collect();
        for name in names {
            self.ensure(server, &name).await?;
        }
        Ok(())
    }

    /// Fails if the store has put one of a batch's documents into an index of the data stream's own name: the stream and its template may have
    /// been removed, or the user may not look whether it is there.
    pub(super) fn check_answer(
        &self,
        answer: &[u8],
        batch: &Batch,
        part: &[usize],
        config: &ElasticsearchConfig,
    ) -> Result<(), Failure> {
        // The reader of the outcomes reports an answer that can't be read.
        let Ok(Answer { items }) = serde_json::from_slice(answer) else { return Ok(()) };
        for (at, item) in part.iter().zip(items) {
            let Some((record, created)) = batch.get(*at).zip(item.create) else { continue };
            let name = config.index.of(&record);
            if (200..300).contains(&created.status) && created.index == name {
                self.known().remove(&name);
                return Err(taken_by_index(&name, "the store put documents into it"));
            }
        }
        Ok(())
    }

    fn known(&self) -> MutexGuard<'_, HashSet<String>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, name: &str) {
        let mut known = self.known();
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(name.to_owned());
    }

    async fn ensure(&self, server: &Server, name: &str) -> Result<(), Failure> {
        if self.known().contains(name) {
            return Ok(());
        }
        let seen = look(server, name).await?;
        if seen != Seen::Stream {
            make(server, name, seen).await?;
        }
        self.remember(name);
        Ok(())
    }
}

async fn look(server: &Server, name: &str) -> Result<Seen, Failure> {
    let path = format!("/_data_stream/{name}?filter_path=data_streams.name");
    let (status, body) = server.raw(Method::GET, &path, None).await?;
    match status {
        StatusCode::FORBIDDEN => Ok(Seen::Hidden),
        // OpenSearch answers 400 to the name of an alias.
        StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST => Ok(Seen::None),
        status if status.is_success() => {
            let described = serde_json::from_slice::<Described>(&body);
            Ok(if described.is_ok_and(|found| !found.data_streams.is_empty()) { Seen::Stream } else { Seen::None })
        }
        status => Err(Failure::Status(status, words(&body))),
    }
}

async fn make(server: &Server, name: &str, seen: Seen) -> Result<(), Failure> {
    let (status, said) = server.raw(Method::PUT, &format!("/_data_stream/{name}"), None).await?;
    let said = words(&said);
    match (status, seen) {
        (status, _) if status.is_success() => Ok(()),
        // What becomes of the first documents tells.
        (StatusCode::FORBIDDEN, Seen::Hidden) => Ok(()),
        (StatusCode::FORBIDDEN, _) => Err(Failure::Unfit(format!(
            "there is no data stream {name}, and the user may not make it ({said}): make it by PUT /_data_stream/{name}, or grant the \
             user `create_index` (in OpenSearch `indices:admin/data_stream/create`)"
        ))),
        // Another writer was quicker.
        _ if look(server, name).await? == Seen::Stream => Ok(()),
        // OpenSearch answers 500 to that.
        _ if is_index(server, name).await? => Err(taken_by_index(name, &said)),
        (StatusCode::BAD_REQUEST, _) => Err(Failure::Unfit(format!(
            "there is no data stream {name}, and the store can't make it: {said}. Create an index template whose `index_patterns` match \
             {name} and that has `\"data_stream\": {{}}`; `template` can install it from a file. Or set data_stream = false to write to a plain index"
        ))),
        (status, _) => Err(Failure::Status(status, said)),
    }
}

/// Whether it is the name of an index or an alias, as far as the user may know.
async fn is_index(server: &Server, name: &str) -> Result<bool, Failure> {
    let indices = server.backing_indices(name).await?;
    Ok(indices.is_some_and(|answer| serde_json::from_slice::<Value>(&answer).is_ok_and(|indices| indices != json!({}))))
}

fn taken_by_index(name: &str, said: &str) -> Failure {
    Failure::Unfit(format!(
        "{name} is an index or an alias, and not a data stream ({said}): move its documents to another index and remove it, name another data \
         stream in `index`, or set data_stream = false. A data stream needs an index template whose `index_patterns` match it and that has \
         `\"data_stream\": {{}}`"
    ))
}
