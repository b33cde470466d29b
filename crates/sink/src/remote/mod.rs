//! The sink of a gateway whose stores are a writer's: each call is a request to a writer, which does the same call on its own sink.
//!
//! The store's cursor stays the truth, and the lane stays the owner of its progress: a writer owns nothing. A lane sticks to a writer and
//! uses another one where that one doesn't answer.

mod binding;
mod caller;
mod config;
pub mod frame;
pub mod protocol;
pub mod reading;
mod upstream;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use event::Lane;
use event::limits::READ_BYTES_MAX;
use event::read::{Page, Query, ReadError};
use http::Method;

pub use config::{DeliverToken, RemoteConfig, RemoteStore, UnknownStore};
pub use upstream::{Lookups, RequestOutcome, Server, Spread, Upstream, UpstreamConfig, Writers};

use crate::read_thread::{PageReader, ReadThread};
use crate::{Batch, Claim, Held, Mark, Reason, Report, SinkError, Takeover};
use binding::Binding;
use caller::{Call, Caller, odd};
use protocol::{ClaimQuery, HeldAnswer, Outcome, SinkInfo};
use reading::{PageJson, QueryJson};

/// Bytes of a page: each byte of a payload may be escaped.
const READ_ANSWER_BYTES_MAX: usize = 2 * READ_BYTES_MAX + 4 * 1024 * 1024;
/// Bytes of an answer that isn't about a batch.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// How soon a lane tries again after it found no writer: one may answer at any moment, and a connection that is refused costs little.
const RETRY_MAX: Duration = Duration::from_secs(1);

/// The sink's handle. Cheap to clone.
#[derive(Clone)]
pub struct Remote {
    shared: Arc<Shared>,
}

struct Shared {
    caller: Caller,
    reads: ReadThread,
}

impl Remote {
    pub(crate) fn new(config: RemoteConfig) -> Self {
        let binding = Arc::new(Binding::new(&config.sink));
        let caller = Caller::new(config, binding);
        Self { shared: Arc::new(Shared { caller, reads: ReadThread::new("writer-read") }) }
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// The kind of store that the writer has.
    pub(crate) fn store(&self) -> RemoteStore {
        self.shared.caller.config().store
    }

    fn binding(&self) -> &Binding {
        self.shared.caller.binding()
    }

    pub(crate) fn caution(&self) -> Option<Reason> {
        self.binding().caution()
    }

    /// The mark of the store that the sink is bound to.
    pub(crate) fn mark(&self) -> Option<Mark> {
        self.binding().mark()
    }

    /// Whether a writer reaches another store than the one that the sink is bound to.
    pub(crate) fn has_other_store(&self) -> bool {
        self.binding().has_other_store()
    }

    /// Binds the sink to the store with this mark, or to whichever is found next.
    pub(crate) fn bind(&self, mark: Option<Mark>) {
        match mark {
            Some(mark) => self.binding().expect(mark),
            None => self.binding().unbind(),
        }
    }

    pub(crate) async fn connect(&self) -> Result<(), SinkError> {
        let call =
            Call { method: Method::GET, path: "", lane: None, batch: None, body: None, answer_max: ANSWER_BYTES_MAX };
        if self.binding().is_bound() {
            match self.shared.caller.call::<SinkInfo>(&call).await.and_then(|answer| answer) {
                // What none of the writers has any more they may have changed together.
                Err(SinkError::Misconfigured(_)) => {}
                answered => return answered.map(drop),
            }
        }
        let (mut answers, mut failures) = (Vec::new(), Vec::new());
        for (server, answer) in self.shared.caller.survey(&call).await {
            match answer {
                Ok(info) => {
                    self.check(&server, &info)?;
                    answers.push((server, info));
                }
                Err(error) => failures.push((server, error)),
            }
        }
        if answers.is_empty() {
            let none = || SinkError::Misconfigured("the upstream names no writer".into());
            return Err(failures.into_iter().next().map_or_else(none, |(_, error)| error));
        }
        self.binding().bind(answers)?;
        self.binding().pass_over(failures);
        Ok(())
    }

    /// Compares what a writer has with what this gateway's configuration says of it.
    fn check(&self, server: &str, info: &SinkInfo) -> Result<(), SinkError> {
        let RemoteConfig { sink, store, reads, parts, .. } = self.shared.caller.config();
        let wrong = |what: String| SinkError::Misconfigured(format!("writer {server}: {what}").into());
        let wanted = store.as_str();
        if info.kind != wanted {
            return Err(wrong(format!(
                "its sink `{sink}` is of kind {}, this gateway's configuration says store = \"{wanted}\": change one of them",
                info.kind
            )));
        }
        if *reads && !info.reads {
            return Err(wrong(format!(
                "events can't be read back from its sink `{sink}`: set read = false in the gateway's table of it"
            )));
        }
        let wanted = SinkInfo { parts: parts.clone(), ..info.clone() };
        let of_both = SinkInfo {
            parts: info
                .parts
                .iter()
                .filter(|(name, _)| parts.contains_key(*name))
                .map(|(name, part)| (name.clone(), part.clone()))
                .collect(),
            ..info.clone()
        };
        wanted.difference(&of_both).map_or(Ok(()), |(name, here, there)| {
            Err(wrong(format!(
                "`{name}` of its sink `{sink}` is {there}, this gateway's table says {here}: change one of them"
            )))
        })
    }

    pub(crate) async fn held(&self, lane: &Lane) -> Result<Option<Held>, SinkError> {
        let call = Call {
            method: Method::GET,
            path: "/cursor",
            lane: Some(lane),
            batch: None,
            body: None,
            answer_max: ANSWER_BYTES_MAX,
        };
        self.fitting(self.shared.caller.call(&call).await??)
    }

    pub(crate) async fn claim(
        &self,
        lane: &Lane,
        claim: Claim,
        takeover: &Takeover,
    ) -> Result<Option<Held>, SinkError> {
        let body = serde_json::to_vec(&ClaimQuery::new(claim, takeover)).unwrap_or_default();
        let call = Call {
            method: Method::POST,
            path: "/claim",
            lane: Some(lane),
            batch: None,
            body: Some(body.into()),
            answer_max: ANSWER_BYTES_MAX,
        };
        self.fitting(self.shared.caller.call(&call).await??)
    }

    /// What a writer says of a lane, if its kind of store can say that.
    fn fitting(&self, answer: HeldAnswer) -> Result<Option<Held>, SinkError> {
        let held = answer.into_held().ok_or_else(|| odd("a claim that is none"))?;
        if held.is_some() == self.store().traits().fenced {
            return Ok(held);
        }
        Err(odd("a cursor that its kind of store can't have"))
    }

    pub(crate) async fn write(&self, batch: &Batch) -> Result<Report, SinkError> {
        let call = Call {
            method: Method::POST,
            path: "",
            lane: Some(batch.lane()),
            batch: Some(batch),
            body: Some(frame::encode(batch)),
            answer_max: protocol::ANSWER_BYTES_MAX,
        };
        match self.shared.caller.call::<Outcome>(&call).await? {
            Ok(outcome) => outcome.into_report(batch.len()),
            Err(error) => Err(error),
        }
    }

    /// The longest pause after the last failure. A store that fails gets the usual pauses.
    pub(crate) fn retry_max(&self) -> Option<Duration> {
        self.shared.caller.config().upstream.state().is_unreachable().then_some(RETRY_MAX)
    }

    pub(crate) fn can_read(&self) -> bool {
        self.shared.caller.config().reads
    }

    pub(crate) async fn read(&self, query: Query) -> Result<Page, ReadError> {
        let caller = &self.shared.caller;
        let (config, binding) = (caller.config().clone(), caller.binding().clone());
        self.shared.reads.read(move || Reader(Caller::new(config, binding)), query).await
    }

    /// Ends the calls in flight and closes the connections that wait.
    pub(crate) async fn close(&self) {
        self.shared.caller.close();
        self.shared.reads.close().await;
    }
}

/// Reads through the writers, with connections of its own.
struct Reader(Caller);

impl PageReader for Reader {
    async fn read(&mut self, query: &Query) -> Result<Page, ReadError> {
        let unavailable = |error: SinkError| ReadError::Unavailable(error.to_string().into());
        let body = serde_json::to_vec(&QueryJson::from(query)).unwrap_or_default();
        let call = Call {
            method: Method::POST,
            path: "/read",
            lane: None,
            batch: None,
            body: Some(body.into()),
            answer_max: READ_ANSWER_BYTES_MAX,
        };
        let page: PageJson = self.0.call(&call).await.map_err(unavailable)?.map_err(unavailable)?;
        page.into_page()
    }

    async fn hang_up(&mut self) {
        self.0.close();
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Remote").field(self.shared.caller.config()).finish()
    }
}
