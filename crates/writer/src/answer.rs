//! Responses of a writer: JSON as soon as the store has answered, after one newline a second while the store works.

use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
pub(super) use net::http_client::RequestBody;
use serde::Serialize;
use tokio::time::timeout;
use writer_protocol::wire::{HEARTBEAT, PROBLEM};

/// The result of a sink's call, as JSON.
pub(super) type Work = Pin<Box<dyn Future<Output = Bytes> + Send>>;

/// A rejected request: it had no effect.
#[derive(Debug)]
pub(super) struct Refused {
    status: StatusCode,
    code: &'static str,
    detail: Cow<'static, str>,
}

impl Refused {
    pub(super) fn new(status: StatusCode, code: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Self { status, code, detail: detail.into() }
    }

    pub(super) fn response(&self) -> Response<RequestBody> {
        #[derive(Serialize)]
        struct Problem<'a> {
            status: u16,
            code: &'a str,
            detail: &'a str,
        }
        let problem = Problem { status: self.status.as_u16(), code: self.code, detail: &self.detail };
        response(self.status, PROBLEM, whole(json(&problem)))
    }
}

/// A value as JSON. Strings and numbers always serialize.
pub(super) fn json(value: &impl Serialize) -> Bytes {
    serde_json::to_vec(value).unwrap_or_default().into()
}

/// The response with the result of `work`: with a length if the result is ready within one heartbeat, else chunked, after newlines.
pub(super) async fn of_work(mut work: Work) -> Response<RequestBody> {
    let body = match timeout(HEARTBEAT, &mut work).await {
        Ok(answer) => whole(answer),
        Err(_) => behind_newlines(work),
    };
    response(StatusCode::OK, "application/json", body)
}

fn behind_newlines(work: Work) -> RequestBody {
    const NEWLINE: Bytes = Bytes::from_static(b"\n");
    let frames = stream::unfold((Some(work), true), |(work, is_first)| async move {
        let mut work = work?;
        // `of_work` has waited for the first heartbeat already.
        if is_first {
            return Some((Ok(Frame::data(NEWLINE)), (Some(work), false)));
        }
        Some(match timeout(HEARTBEAT, &mut work).await {
            Ok(answer) => (Ok(Frame::data(answer)), (None, false)),
            Err(_) => (Ok(Frame::data(NEWLINE)), (Some(work), false)),
        })
    });
    BodyExt::boxed_unsync(StreamBody::new(frames))
}

pub(super) fn whole(bytes: Bytes) -> RequestBody {
    net::http_client::full(bytes)
}

pub(super) fn response(status: StatusCode, content_type: &'static str, body: RequestBody) -> Response<RequestBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
