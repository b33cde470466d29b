//! Requests that wait, and the lookups that answer them: those that wait at the same time are in one query of each store.

use std::collections::HashMap;
use std::mem;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use event::EventId;
use event::read::{Lookup, ReadError, StoreReader};
use limits::{EVENT_BYTES_MAX, LOOKUP_IDS_MAX};
use nats::{Bus, BusError, Message};
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;

use super::Readers;
use super::service::Identity;

/// Lookups at a time: a store that doesn't answer doesn't stop all of them.
const AT_A_TIME: usize = 4;
/// Requests that may wait. Each takes some hundred bytes.
const WAITING_MAX: usize = 4096;

/// A request that waits.
struct Asked {
    id: EventId,
    /// The subject of the answer.
    reply: Box<[u8]>,
    since: Instant,
}

/// An error as micro services answer it.
struct Failure {
    code: u16,
    text: String,
}

/// Takes requests until it is dropped.
pub(super) struct Lookups {
    waiting: mpsc::Sender<Asked>,
    answers: Rc<Answers>,
}

impl Lookups {
    /// The tasks end when all requests are answered.
    pub(super) fn start(bus: Bus, identity: Rc<Identity>, readers: Readers) -> (Self, JoinSet<()>) {
        let (waiting, received) = mpsc::channel(WAITING_MAX);
        let received = Rc::new(Mutex::new(received));
        let answers = Rc::new(Answers { bus, identity, readers });
        let mut tasks = JoinSet::new();
        for _ in 0..AT_A_TIME {
            tasks.spawn_local(answers.clone().follow(received.clone()));
        }
        (Self { waiting, answers }, tasks)
    }

    /// Takes a request, or answers it immediately if it can't be looked up.
    pub(super) fn take(&self, request: &Message) {
        // Without it, the client waits for no answer.
        let Some(reply) = request.reply() else { return };
        let since = Instant::now();
        let parsed = std::str::from_utf8(request.payload()).ok().and_then(|text| text.parse().ok());
        let failure = match parsed {
            None => Failure { code: 400, text: "the body is not an event id: send the UUID alone".to_owned() },
            Some(id) => {
                let Err(_) = self.waiting.try_send(Asked { id, reply: reply.into(), since }) else { return };
                of_store(&ReadError::Busy)
            }
        };
        self.answers.fail(reply, since, &failure);
    }
}

/// The side of the answers.
struct Answers {
    bus: Bus,
    identity: Rc<Identity>,
    readers: Readers,
}

impl Answers {
    /// Answers waiting requests until the other side is dropped.
    async fn follow(self: Rc<Self>, waiting: Rc<Mutex<mpsc::Receiver<Asked>>>) {
        let mut asked = Vec::new();
        while waiting.lock().await.recv_many(&mut asked, LOOKUP_IDS_MAX).await > 0 {
            self.answer(mem::take(&mut asked)).await;
        }
    }

    /// Searches one store after the other. One that can't be read may be the one that has the event.
    async fn answer(&self, all: Vec<Asked>) {
        let mut open: HashMap<EventId, Vec<Asked>> = HashMap::with_capacity(all.len());
        all.into_iter().for_each(|asked| open.entry(asked.id).or_default().push(asked));
        let unknown = "no readable sink has the event: it is unknown, or not stored yet";
        let mut failure = Failure { code: 404, text: unknown.to_owned() };
        for reader in self.readers.current() {
            if open.is_empty() {
                return;
            }
            if let Err(error) = self.search(&reader, &mut open).await {
                failure = failure.or_worse(of_store(&error));
            }
        }
        for asked in open.values().flatten() {
            self.fail(&asked.reply, asked.since, &failure);
        }
    }

    /// Answers those requests whose events the store has.
    async fn search(
        &self,
        reader: &Arc<dyn StoreReader>,
        open: &mut HashMap<EventId, Vec<Asked>>,
    ) -> Result<(), ReadError> {
        let mut ids: Vec<EventId> = open.keys().copied().collect();
        while !ids.is_empty() {
            let count = ids.len();
            let found = reader.get(Lookup { ids, bytes_max: EVENT_BYTES_MAX, only_type: None }).await?;
            for event in &found.events {
                let Some(body) = gateway::event_json(event) else { continue };
                open.remove(&event.id).iter().flatten().for_each(|asked| self.succeed(asked, &body));
            }
            ids = found.left;
            // A store that has answered nothing would be asked for ever.
            if ids.len() >= count {
                return Err(ReadError::Busy);
            }
        }
        Ok(())
    }

    fn succeed(&self, asked: &Asked, body: &[u8]) {
        match self.bus.publish(&asked.reply, b"", body) {
            Ok(()) => self.identity.found(asked.since.elapsed()),
            Err(BusError::TooLarge { max }) => {
                let text = format!("the event is larger than max_payload of the NATS server, {max} bytes");
                self.fail(&asked.reply, asked.since, &Failure { code: 413, text });
            }
            Err(error) => self.identity.unanswered(asked.since.elapsed(), format!("503:{error}")),
        }
    }

    fn fail(&self, reply: &[u8], since: Instant, failure: &Failure) {
        let Failure { code, text } = failure;
        let lines = format!("Nats-Service-Error: {text}\r\nNats-Service-Error-Code: {code}\r\n");
        match self.bus.publish(reply, lines.as_bytes(), b"") {
            Ok(()) => self.identity.failed(since.elapsed(), format!("{code}:{text}")),
            // The client asks again when it has waited for long enough.
            Err(error) => self.identity.unanswered(since.elapsed(), format!("503:{error}")),
        }
    }
}

impl Failure {
    /// The one that says more: a store that can't be read may have what others don't.
    fn or_worse(self, other: Self) -> Self {
        if other.code >= self.code { other } else { self }
    }
}

/// A store's error message is only for the operator.
fn of_store(error: &ReadError) -> Failure {
    let (code, text) = match error {
        ReadError::Untyped(why) => (404, why.to_string()),
        ReadError::Busy => (503, "too many reads are waiting for the store: retry later".to_owned()),
        _ => (503, "the store cannot be read now: retry later. The log of Forebay has the reason".to_owned()),
    };
    Failure { code, text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn store_that_can_not_be_read_outweighs_those_without_the_event() {
        let failure = |code: u16| Failure { code, text: code.to_string() };
        for (first, second, expected) in [(404, 503, 503), (503, 404, 503), (404, 404, 404)] {
            assert_eq!(failure(first).or_worse(failure(second)).code, expected, "{first} {second}");
        }
    }
}
