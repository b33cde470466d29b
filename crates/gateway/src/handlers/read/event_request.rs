//! `GET /events/{id}`: one event, from whichever store has it.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use event::read::{ReadError, StoreReader};
use event::{EventId, Position};

use super::lookup::{SHARD, of_store, pending, stores, with_room};
use super::parameters::Parameters;
use super::{dead_letter, response};
use crate::admission::{ClientBucket, ReadPermit};
use crate::error_code::ErrorCode;
use crate::event_types::TypeRegistry;
use crate::lookups::LookupError;
use crate::problem::{Problem, Refused};
use crate::shard::ShardContext;
use http1::Response;

const PARAMETERS: [&str; 3] = ["type", "position", SHARD];

/// A request for one event.
pub(crate) struct EventRequest {
    id: EventId,
    /// The position that the response to its post had.
    position: Option<Position>,
    readers: Vec<Arc<dyn StoreReader>>,
}

impl EventRequest {
    pub(super) fn of(types: &TypeRegistry, id: &str, query: Option<&str>) -> Result<Self, Refused> {
        let id = id
            .parse()
            .map_err(|error| Problem::bad("Invalid event id", format!("the event id in the path: {error}")))?;
        let parameters = Parameters::read(query, &PARAMETERS)?;
        let readers = stores(types, &parameters)?;
        Ok(Self { id, position: parameters.value("position")?, readers })
    }

    pub(super) async fn respond(&self, shard: &ShardContext, client: ClientBucket) -> Result<Response, Refused> {
        let position = shard.log.position_of(self.id).or(self.position);
        // Checked before the stores are read: an event that is processed by now is found there, or nowhere.
        let pending = position.map_or_else(Vec::new, |position| pending(shard, &self.readers, position));
        match (self.find(shard, client).await, position) {
            (Ok(Some((body, permit))), _) => Ok(with_room(response::ok(body), permit)),
            (_, Some(position)) if !pending.is_empty() => Ok(response::pending_event(self.id, position, &pending)),
            (Ok(None), position) => {
                let refusals = dead_letter::of_event(shard, self.id, position).await;
                if refusals.count > 0 {
                    return Ok(response::dead_event(self.id, position, refusals));
                }
                Err(self.unknown(shard, position))
            }
            (Err(refused), _) => Err(refused),
        }
    }

    /// Searches all stores at the same time. A store that doesn't answer may be the one that has it.
    async fn find(&self, shard: &ShardContext, client: ClientBucket) -> Result<Option<(Vec<u8>, ReadPermit)>, Refused> {
        let ask = |reader| shard.lookups.ask(reader, self.id, client);
        let mut asked: Vec<_> = self.readers.iter().map(ask).collect();
        let mut nowhere = Ok(None);
        poll_fn(|context| {
            let mut at = 0;
            while let Some(answer) = asked.get_mut(at) {
                let Poll::Ready(answer) = Pin::new(answer).poll(context) else {
                    at += 1;
                    continue;
                };
                asked.swap_remove(at);
                match answer.unwrap_or(Err(LookupError::Store(ReadError::Busy))) {
                    Ok(Some((event, permit))) => {
                        if let Some(body) = response::event_json(&event) {
                            return Poll::Ready(Ok(Some((body, permit))));
                        }
                    }
                    Ok(None) => {}
                    Err(LookupError::Store(error)) => nowhere = Err(of_store(&error)),
                    Err(LookupError::NoMemory(detail)) => nowhere = Err(Problem::boxed(ErrorCode::Overload, detail)),
                }
            }
            if asked.is_empty() { Poll::Ready(std::mem::replace(&mut nowhere, Ok(None))) } else { Poll::Pending }
        })
        .await
    }

    fn unknown(&self, shard: &ShardContext, position: Option<Position>) -> Refused {
        let id = self.id;
        let detail = match position.filter(|position| shard.log.has_durable(*position)) {
            Some(position) => format!(
                "event {id} is not stored, although position {position} is processed: the condition of its route \
                 was false, it was deleted from the store, or it is a dead letter that cannot be read now"
            ),
            None => format!("event {id} is unknown, because no readable sink has it: check the id"),
        };
        Problem::boxed(ErrorCode::UnknownEvent, detail)
    }
}
