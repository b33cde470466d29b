//! `GET /events/{id}`: one event, from whichever store has it.

use std::sync::Arc;

use event::read::{Query, StoreReader, Wanted};
use event::{EventId, Position};

use super::lookup::{EVENT_ROOM, nothing_to_read, of_store, pending, type_name, with_room};
use super::parameters::Parameters;
use super::{dead_letter, response};
use crate::admission::ClientBucket;
use crate::error_code::ErrorCode;
use crate::event_types::TypeRegistry;
use crate::problem::{Problem, Refused};
use crate::shard::ShardContext;
use http1::Response;

const PARAMETERS: [&str; 2] = ["type", "position"];

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
        let readers = match type_name(&parameters)? {
            Some(name) => vec![types.reader_of(&name)?],
            None => types.readers(),
        };
        if readers.is_empty() {
            return Err(nothing_to_read());
        }
        Ok(Self { id, position: parameters.value("position")?, readers })
    }

    pub(super) async fn respond(&self, shard: &ShardContext, client: ClientBucket) -> Result<Response, Refused> {
        let permit = shard.shared.read_budget.take(EVENT_ROOM, client)?;
        let position = shard.log.position_of(self.id).or(self.position);
        // Checked before the stores are read: an event that is processed by now is found there, or nowhere.
        let pending = position.map_or_else(Vec::new, |position| pending(shard, &self.readers, position));
        match (self.find().await, position) {
            (Ok(Some(body)), _) => Ok(with_room(response::ok(body), permit)),
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

    /// Searches one store after the other. A store that doesn't answer may be the one that has it.
    async fn find(&self) -> Result<Option<Vec<u8>>, Refused> {
        let mut nowhere = Ok(None);
        for reader in &self.readers {
            let wanted = Wanted::Ids { first: self.id, last: self.id };
            match reader.read(Query { wanted, after: None, limit: 1, bytes_max: 2 * EVENT_ROOM, only_type: None }).await
            {
                Ok(page) => {
                    if let Some(body) = page.events.first().and_then(response::event_json) {
                        return Ok(Some(body));
                    }
                }
                Err(error) => nowhere = Err(of_store(&error)),
            }
        }
        nowhere
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
