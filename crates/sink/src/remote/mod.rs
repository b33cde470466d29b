//! The sink of a gateway whose stores are a writer's: each call is a request to a writer, which does the same call on its own sink.
//!
//! The store's cursor stays the truth, and the lane stays the owner of its progress: a writer owns nothing. A lane sticks to a writer and
//! uses another one where that one doesn't answer.

pub(crate) mod caller;
mod config;
pub mod frame;
pub mod objects;
pub mod protocol;
pub mod reading;
pub(crate) mod servers;

use std::fmt;
use std::sync::Arc;

use event::Lane;
use event::limits::READ_BYTES_MAX;
use event::read::{Page, Query, ReadError};
use http::Method;

pub use config::{DeliverToken, RemoteConfig, RemoteObjectsConfig, RemoteStore, UnknownStore};

use crate::read_thread::{PageReader, ReadThread};
use crate::{Batch, Claim, Held, Reason, Report, SinkError, Takeover};
use caller::{Call, Caller, odd};
use protocol::{ClaimQuery, HeldAnswer, Outcome, SinkInfo};
use reading::{PageJson, QueryJson};
use servers::Servers;

/// Bytes of a page: each byte of a payload may be escaped.
const READ_ANSWER_BYTES_MAX: usize = 2 * READ_BYTES_MAX + 4 * 1024 * 1024;
/// Bytes of an answer that isn't about a batch.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// The sink's handle. Cheap to clone.
#[derive(Clone)]
pub struct Remote {
    shared: Arc<Shared>,
}

struct Shared {
    caller: Caller,
    reads: ReadThread,
    /// What the writer said at the last connection.
    info: std::sync::Mutex<Option<SinkInfo>>,
}

impl Remote {
    pub(crate) fn new(config: RemoteConfig) -> Self {
        let servers = Arc::new(Servers::new(config.servers.iter().map(ToString::to_string).collect()));
        let caller = Caller::new(config, servers);
        let shared = Shared { caller, reads: ReadThread::new("writer-read"), info: std::sync::Mutex::default() };
        Self { shared: Arc::new(shared) }
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// The kind of store that the writer has.
    pub(crate) fn store(&self) -> RemoteStore {
        self.shared.caller.config().store
    }

    pub(crate) fn caution(&self) -> Option<Reason> {
        self.info().as_ref()?.caution.as_deref().map(Into::into)
    }

    fn info(&self) -> std::sync::MutexGuard<'_, Option<SinkInfo>> {
        self.shared.info.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(crate) async fn connect(&self) -> Result<(), SinkError> {
        let info = info(&self.shared.caller).await?;
        if self.shared.caller.config().reads && !info.reads {
            let sink = &self.shared.caller.config().sink;
            let reason = format!(
                "events can't be read back from the writer's sink `{sink}`: set read = false in the gateway's table of it"
            );
            return Err(SinkError::Misconfigured(reason.into()));
        }
        *self.info() = Some(info);
        Ok(())
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

    pub(crate) fn can_read(&self) -> bool {
        self.shared.caller.config().reads
    }

    pub(crate) async fn read(&self, query: Query) -> Result<Page, ReadError> {
        let (config, servers) = (self.shared.caller.config().clone(), self.shared.caller.servers().clone());
        self.shared.reads.read(move || Reader(Caller::new(config, servers)), query).await
    }

    /// Ends the calls in flight and closes the connections that wait.
    pub(crate) async fn close(&self) {
        self.shared.caller.close();
        self.shared.reads.close().await;
    }
}

/// Connects a writer's sink to its store, and asks what it is: the kind of store that the configuration names.
pub(crate) async fn info(caller: &Caller) -> Result<SinkInfo, SinkError> {
    let call =
        Call { method: Method::GET, path: "", lane: None, batch: None, body: None, answer_max: ANSWER_BYTES_MAX };
    let info: SinkInfo = caller.call(&call).await??;
    let (sink, wanted) = (&caller.config().sink, caller.config().store.as_str());
    if info.kind == wanted {
        return Ok(info);
    }
    let reason = format!(
        "the writer's sink `{sink}` is of kind {}, this gateway's configuration says store = \"{wanted}\": change one of them",
        info.kind
    );
    Err(SinkError::Misconfigured(reason.into()))
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
