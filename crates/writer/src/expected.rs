//! Which store and which sink a gateway is bound to. A call for another one does nothing, and its answer says what is here.

use hyper::HeaderMap;
use sink::remote::protocol::{self, Outcome, SinkInfo};
use sink::{Mark, SinkError};

use crate::Offered;
use crate::answer::{self, Refused, Work};
use crate::request::{bad_request, text};

/// What a request names of both; nothing before its gateway knows any.
#[derive(Clone, Debug, Default)]
pub(super) struct Expected {
    layout: Option<String>,
    pub(super) mark: Option<Mark>,
}

impl Expected {
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, Refused> {
        let mark = text(headers, protocol::MARK).map(|text| text.parse().map_err(|_| odd_mark())).transpose()?;
        Ok(Self { layout: text(headers, protocol::LAYOUT).map(str::to_owned), mark })
    }
}

fn odd_mark() -> Refused {
    bad_request("the header Forebay-Mark is no mark: run the same release of gateway and writer")
}

impl Offered {
    /// What it is, as gateways compare it.
    pub(super) fn info(&self, mark: Option<Mark>) -> SinkInfo {
        SinkInfo {
            kind: self.kind.to_owned(),
            reads: self.sink.can_read(),
            caution: self.sink.caution().map(|words| words.to_string()),
            mark: mark.map(|mark| mark.to_string()),
            parts: self.parts.clone(),
        }
    }

    /// The same if it isn't what is expected. The store is asked for its mark where `asks_store` says so: a batch
    /// is compared by the connection that writes it.
    pub(super) async fn differing(&self, expected: &Expected, asks_store: bool) -> Result<Option<SinkInfo>, SinkError> {
        let differs = |mark| expected.layout.as_ref().is_some_and(|layout| *layout != self.info(mark).fingerprint());
        if asks_store && expected.mark.is_some() {
            let mark = self.sink.mark().await?;
            return Ok((mark != expected.mark || differs(mark)).then(|| self.info(mark)));
        }
        if differs(None) { self.sink.mark().await.map(|mark| Some(self.info(mark))) } else { Ok(None) }
    }

    /// Does `work`, unless the sink isn't what is expected.
    pub(super) fn verified(self, expected: Expected, asks_store: bool, work: Work) -> Work {
        Box::pin(async move {
            match self.differing(&expected, asks_store).await {
                Ok(None) => work.await,
                Ok(Some(info)) => answer::json(&Outcome::Differs { info }),
                Err(error) => answer::json(&Outcome::from(error)),
            }
        })
    }

    /// What a call's failure comes to.
    pub(super) fn failed(&self, error: SinkError) -> Outcome {
        match error {
            SinkError::OtherStore(mark) => Outcome::Differs { info: self.info(Some(mark)) },
            error => error.into(),
        }
    }
}
