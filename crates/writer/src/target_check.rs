//! Compares the writer's store and sink with those that the gateway is bound to. If one differs, the call does nothing, and the response
//! describes the writer's.

use std::sync::{MutexGuard, PoisonError};

use hyper::HeaderMap;
use objects::ObjectSink;
use sink::{Mark, SinkError};
use writer_protocol::object::ObjectLimits;
use writer_protocol::{Outcome, SinkInfo, wire};

use crate::Offered;
use crate::answer::{self, Refused, Work};
use crate::request_parts::parsed;

/// What a request expects of both. The gateway's first requests expect nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct Expected {
    layout: Option<String>,
    pub(super) mark: Option<Mark>,
}

impl Expected {
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, Refused> {
        Ok(Self { layout: parsed(headers, wire::LAYOUT)?, mark: parsed(headers, wire::MARK)? })
    }
}

/// When a call compares the store's mark with the expected one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// Before the call, by asking the store.
    First,
    /// The connection that writes the batch compares it.
    AtWrite,
    /// Before the call, with the mark that was read last. Asking the store may wait for its write path, and a read must not. Another store is
    /// detected by the next cursor, claim or batch.
    AsSeen,
}

impl Offered {
    /// The store's mark.
    pub(super) async fn mark(&self) -> Result<Option<Mark>, SinkError> {
        let mark = self.sink.mark().await?;
        *self.mark_seen() = mark;
        Ok(mark)
    }

    fn mark_seen(&self) -> MutexGuard<'_, Option<Mark>> {
        self.mark_seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The description that gateways compare.
    pub(super) fn info(&self, mark: Option<Mark>) -> SinkInfo {
        SinkInfo {
            kind: self.kind.to_owned(),
            reads: self.sink.can_read(),
            warning: self.sink.warning().map(|warning| warning.to_string()),
            mark: mark.map(|mark| mark.to_string()),
            parts: self.parts.clone(),
            objects: ObjectSink::of(&self.sink).map(|store| ObjectLimits::from(&store.rules())),
        }
    }

    /// The description, if it differs from what is expected.
    pub(super) async fn differing(&self, expected: &Expected, check: Check) -> Result<Option<SinkInfo>, SinkError> {
        let differs = |mark| expected.layout.as_ref().is_some_and(|layout| *layout != self.info(mark).fingerprint());
        if check != Check::AtWrite && expected.mark.is_some() {
            let seen = if check == Check::AsSeen { *self.mark_seen() } else { None };
            let mark = if seen.is_some() { seen } else { self.mark().await? };
            return Ok((mark != expected.mark || differs(mark)).then(|| self.info(mark)));
        }
        if differs(None) { self.mark().await.map(|mark| Some(self.info(mark))) } else { Ok(None) }
    }

    /// Runs `work`, unless the sink differs from what is expected.
    pub(super) fn verified(self, expected: Expected, check: Check, work: Work) -> Work {
        Box::pin(async move {
            match self.differing(&expected, check).await {
                Ok(None) => work.await,
                Ok(Some(info)) => answer::json(&Outcome::Differs { info }),
                Err(error) => answer::json(&Outcome::from(error)),
            }
        })
    }

    /// The outcome of a failed call.
    pub(super) fn failed(&self, error: SinkError) -> Outcome {
        match error {
            SinkError::OtherStore(mark) => {
                *self.mark_seen() = Some(mark);
                Outcome::Differs { info: self.info(Some(mark)) }
            }
            error => error.into(),
        }
    }
}
