//! Data streams are created before the first document. Otherwise, if no template declares the name as a data stream,
//! the store creates a plain index and reports success.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use sink::Batch;

use super::config::{ElasticsearchConfig, IndexTarget};
use super::error::{Failure, message};
use super::server::Server;

/// The maximum of cached names. Others are checked again.
const KNOWN_MAX: usize = 4096;

/// The cached names of data streams.
#[derive(Debug, Default)]
pub(super) struct DataStreams {
    known: Mutex<HashSet<String>>,
}

/// The store's answer about a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Stream,
    None,
    /// The user isn't allowed to read it.
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
    /// Clears the cache.
    pub(super) fn forget(&self) {
        self.known().clear();
    }

    /// Creates the data stream of a configuration with only one name.
    pub(super) async fn prepare(&self, config: &ElasticsearchConfig, server: &Server) -> Result<(), Failure> {
        match config.index.only_name().filter(|_| config.target == IndexTarget::DataStream) {
            Some(name) => self.ensure(server, name).await,
            None => Ok(()),
        }
    }

    /// Creates the missing data streams of a batch.
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

    /// Fails if the store has put one of a batch's documents into an index with the data stream's own name. The stream
    /// and its template may have been removed, or the user may not check whether it exists.
    pub(super) fn check_answer(
        &self,
        answer: &[u8],
        batch: &Batch,
        part: &[usize],
        config: &ElasticsearchConfig,
    ) -> Result<(), Failure> {
        // The parser of the outcomes reports an invalid response.
        let Ok(Answer { items }) = serde_json::from_slice(answer) else { return Ok(()) };
        for (at, item) in part.iter().zip(items) {
            let Some((record, created)) = batch.get(*at).zip(item.create) else { continue };
            let name = config.index.of(&record);
            if (200..300).contains(&created.status) && created.index == name {
                self.known().remove(&name);
                return Err(taken_by_index(&name, "the store has put documents into it"));
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
        let seen = find(server, name).await?;
        if seen != Seen::Stream {
            create(server, name, seen).await?;
        }
        self.remember(name);
        Ok(())
    }
}

async fn find(server: &Server, name: &str) -> Result<Seen, Failure> {
    let path = format!("/_data_stream/{name}?filter_path=data_streams.name");
    let (status, body) = server.raw(Method::GET, &path, None).await?;
    match status {
        StatusCode::FORBIDDEN => Ok(Seen::Hidden),
        // OpenSearch answers 400 for the name of an alias.
        StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST => Ok(Seen::None),
        status if status.is_success() => {
            let described = serde_json::from_slice::<Described>(&body);
            Ok(if described.is_ok_and(|found| !found.data_streams.is_empty()) { Seen::Stream } else { Seen::None })
        }
        status => Err(Failure::Status(status, message(&body))),
    }
}

async fn create(server: &Server, name: &str, seen: Seen) -> Result<(), Failure> {
    let (status, said) = server.raw(Method::PUT, &format!("/_data_stream/{name}"), None).await?;
    let said = message(&said);
    match (status, seen) {
        (status, _) if status.is_success() => Ok(()),
        // The result of the first documents shows whether it exists.
        (StatusCode::FORBIDDEN, Seen::Hidden) => Ok(()),
        (StatusCode::FORBIDDEN, _) => Err(Failure::Misfit(format!(
            "the data stream {name} doesn't exist, and the user may not create it ({said}): create it by PUT \
             /_data_stream/{name}, or grant `create_index` (in OpenSearch `indices:admin/data_stream/create`)"
        ))),
        // Another writer has created it.
        _ if find(server, name).await? == Seen::Stream => Ok(()),
        // OpenSearch answers 500 in this case.
        _ if is_index(server, name).await? => Err(taken_by_index(name, &said)),
        (StatusCode::BAD_REQUEST, _) => Err(Failure::Misfit(format!(
            "the data stream {name} doesn't exist, and the store can't create it: {said}. Create an index template for \
             {name} with `\"data_stream\": {{}}` (or set `template`), or set data_stream = false"
        ))),
        (status, _) => Err(Failure::Status(status, said)),
    }
}

/// Whether it is the name of an index or an alias that the user may read.
async fn is_index(server: &Server, name: &str) -> Result<bool, Failure> {
    let indices = server.backing_indices(name).await?;
    Ok(indices.is_some_and(|answer| serde_json::from_slice::<Value>(&answer).is_ok_and(|indices| indices != json!({}))))
}

fn taken_by_index(name: &str, said: &str) -> Failure {
    Failure::Misfit(format!(
        "{name} is an index or an alias, and not a data stream ({said}): move its documents away and remove it, set \
         another `index`, or set data_stream = false. A data stream needs an index template"
    ))
}
