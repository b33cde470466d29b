//! `GET /events/{id}`: one event, from whichever store has it.

use std::sync::Arc;

use event::read::{Query, Reader, Wanted};
use event::{EventId, Position};

use super::parameters::Parameters;
use super::request::{EVENT_ROOM, nothing_to_read, of_store, pending, type_name, with_room};
use super::{answer, dead};
use crate::code::Code;
use crate::http1::response::Response;
use crate::problem::{Problem, Refused};
use crate::shares::Sender;
use crate::type_table::TypeTable;
use crate::worker::Worker;

const PARAMETERS: [&str; 2] = ["type", "position"];

/// One event that is asked for.
pub(crate) struct EventRequest {
    id: EventId,
    /// Where its client was told that it stands.
    position: Option<Position>,
    readers: Vec<Arc<dyn Reader>>,
}

impl EventRequest {
    pub(super) fn of(types: &TypeTable, id: &str, query: Option<&str>) -> Result<Self, Refused> {
        let id = id.parse().map_err(|error| Problem::bad("The path names no event", format!("the path: {error}")))?;
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

    pub(super) async fn answer(&self, worker: &Worker, sender: Sender) -> Result<Response, Refused> {
        let permit = worker.read_room().take(EVENT_ROOM, sender)?;
        let position = worker.log().position_of(self.id).or(self.position);
        // Asked before the stores are: what is settled by now is found there, or nowhere.
        let pending = position.map_or_else(Vec::new, |position| pending(worker, &self.readers, position));
        match (self.find().await, position) {
            (Ok(Some(body)), _) => Ok(with_room(answer::ok(body), permit)),
            (_, Some(position)) if !pending.is_empty() => Ok(answer::pending_event(self.id, position, &pending)),
            (Ok(None), position) => {
                let refusals = dead::of_event(worker, self.id, position).await;
                if refusals.count > 0 {
                    return Ok(answer::dead_event(self.id, position, refusals));
                }
                Err(self.unknown(worker, position))
            }
            (Err(refused), _) => Err(refused),
        }
    }

    /// Looks for it in one store after the other. One that doesn't answer may be the one that has it.
    async fn find(&self) -> Result<Option<Vec<u8>>, Refused> {
        let mut nowhere = Ok(None);
        for reader in &self.readers {
            let wanted = Wanted::Ids { first: self.id, last: self.id };
            match reader.read(Query { wanted, after: None, limit: 1, bytes_max: 2 * EVENT_ROOM }).await {
                Ok(page) => {
                    if let Some(body) = page.events.first().and_then(answer::event) {
                        return Ok(Some(body));
                    }
                }
                Err(error) => nowhere = Err(of_store(&error)),
            }
        }
        nowhere
    }

    fn unknown(&self, worker: &Worker, position: Option<Position>) -> Refused {
        let id = self.id;
        let detail = match position.filter(|position| worker.log().has_durable(*position)) {
            Some(position) => format!(
                "no event {id} is stored, and position {position} has its outcome: the condition of its route to the \
                 store is false on it, or it was removed from there, or is a dead letter that can't be read now"
            ),
            None => format!("no event {id} is known"),
        };
        Problem::boxed(Code::UnknownEvent, detail)
    }
}
