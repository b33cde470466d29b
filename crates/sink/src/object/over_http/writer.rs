//! Objects stored through a writer: the gateway makes them, and the writer's own sink streams them to its store. The writer has the
//! credentials, and answers after the store.

use std::time::Duration;

use bytes::Bytes;
use event::Lane;
use event::limits::OBJECT_READ_TIMEOUT;
use http::{HeaderMap, HeaderValue, Method, header};

use super::body::Body;
use super::coded::Digests;
use super::failure::Failure;
use super::making::Target;
use super::put::{DESCRIPTION, Upload};
use crate::object::ObjectRules;
use crate::remote::RemoteConfig;
use crate::remote::caller::{Call, Caller, Content};
use crate::remote::objects::{DIGEST, ObjectLimits, PATH, digest_text};
use crate::remote::protocol::Outcome;
use crate::{Mark, Reason, SinkError};
use net::http_client::Answer;

/// A writer may be silent for as long as a reader waits for the store.
const READ_SILENCE_MAX: Duration = OBJECT_READ_TIMEOUT;

/// A sink of writers.
pub(super) struct WriterSink {
    caller: Caller,
}

impl WriterSink {
    /// A sink that connects to the writers at its first call.
    pub(super) fn new(config: RemoteConfig) -> Self {
        Self { caller: Caller::new(config) }
    }

    pub(super) const fn caller(&self) -> &Caller {
        &self.caller
    }

    /// The same sink with connections of its own, for reads.
    pub(super) fn to_read(&self) -> Self {
        Self { caller: self.caller.to_read(READ_SILENCE_MAX) }
    }

    pub(super) fn name(&self) -> String {
        format!("sink {} of a writer", self.caller.config().sink)
    }

    /// Connects the writer's sink to its store, and compares the limits of objects.
    pub(super) async fn connect(&self, rules: &ObjectRules) -> Result<(), SinkError> {
        let here = ObjectLimits::from(rules);
        self.caller.connect(|info| here.check(info.objects, &self.caller.config().sink)).await
    }

    pub(super) fn mark(&self) -> Result<Mark, SinkError> {
        self.caller.binding().mark().ok_or_else(|| SinkError::Unavailable("no writer has answered yet".into()))
    }

    async fn upload(
        &self,
        lane: &Lane,
        upload: &Upload<'_, impl Fn() -> Body + Send + Sync>,
        replaces: bool,
    ) -> Result<(), Failure> {
        let digests = digest_text(&upload.digests.md5, &upload.digests.sha256);
        let digests = HeaderValue::try_from(digests).map_err(|_| Failure::Unsendable)?;
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, upload.content_type.clone());
        headers.insert(DIGEST, digests);
        if !replaces {
            headers.insert(header::IF_NONE_MATCH, HeaderValue::from_static("*"));
        }
        let body = || (upload.body)().into_client();
        let path = format!("/{PATH}{}", upload.name);
        let content = Content::Object(upload.digests.bytes, &body);
        let call = Call { lane: Some(lane), headers, content, ..Call::new(Method::PUT, &path) };
        match self.caller.call(&call).await.and_then(|answer| answer).map_err(Failure::Writer)? {
            Outcome::Stored => Ok(()),
            _ => Err(Failure::Writer(unclear("says of an object what it can say of a batch only"))),
        }
    }

    /// Asks for an object.
    pub(super) async fn get(&self, name: &str, headers: &HeaderMap) -> Result<Answer, Failure> {
        let path = format!("/{PATH}{name}");
        let call = Call { headers: headers.clone(), ..Call::new(Method::GET, &path) };
        self.caller.download(&call).await.map_err(Failure::Writer)
    }
}

impl Target for WriterSink {
    async fn put_object(
        &self,
        lane: &Lane,
        upload: &Upload<'_, impl Fn() -> Body + Send + Sync>,
    ) -> Result<(), Failure> {
        self.upload(lane, upload, false).await
    }

    async fn describe(&self, lane: &Lane, name: &str, text: Bytes) -> Result<(), Failure> {
        let (digests, body) = (Digests::of(&text), || Body::Whole(text.clone()));
        let upload = Upload { name, digests, content_type: DESCRIPTION, is_new: false, is_once: false, body };
        self.upload(lane, &upload, true).await
    }
}

fn unclear(what: &str) -> SinkError {
    let reason: Reason = format!("the writer {what}: run the same release of gateway and writer").into();
    SinkError::Unavailable(reason)
}
