//! The mark of what objects are kept in: an object beside them.

use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, header};

use super::ask::{Ask, words};
use super::body::Body;
use super::coded::Digests;
use super::failure::Failure;
use super::put::{Store, expect_success};
use crate::Mark;

const NAME: &str = "forebay-mark";
const TEXT: HeaderValue = HeaderValue::from_static("text/plain");
/// More bytes aren't a mark's.
const BYTES_MAX: usize = 1024;

/// Reads the mark, and makes it where there is none.
pub(super) async fn of(store: &Store) -> Result<Mark, Failure> {
    let name = format!("{}{NAME}", store.rules.prefix.fixed());
    if let Some(mark) = read(store, &name).await? {
        return Ok(mark);
    }
    let mark = Mark::random().map_err(|error| Failure::Parts(error.to_string().into()))?;
    let text = Bytes::from(mark.to_string());
    let digests = Digests::of(&text);
    // Of several writers that connect at once one finds nothing under the name.
    let ask = || Ask::put(&name, Body::Whole(text.clone()), digests, TEXT).with(header::IF_NONE_MATCH, "*");
    let mut answer = store.send_into_container(&ask).await?;
    if answer.status() == StatusCode::NOT_IMPLEMENTED {
        answer = store.send_into_container(&|| Ask::put(&name, Body::Whole(text.clone()), digests, TEXT)).await?;
    }
    if answer.status() != StatusCode::PRECONDITION_FAILED {
        super::put::drain(expect_success(answer, || words(&Method::PUT, Some(&name))).await?).await;
    }
    read(store, &name).await?.ok_or(Failure::Unsettled { object: name })
}

async fn read(store: &Store, name: &str) -> Result<Option<Mark>, Failure> {
    let given = store.service.send(|| Ask::of(Method::GET, Some(name))).await?;
    if given.status() == StatusCode::NOT_FOUND {
        return Ok(None);
    }
    let doing = || words(&Method::GET, Some(name));
    let body = expect_success(given, doing).await?.bytes(BYTES_MAX).await?;
    let mark = std::str::from_utf8(&body).ok().and_then(|text| text.parse().ok());
    mark.map(Some).ok_or_else(|| Failure::Unclear { doing: doing(), missing: "a mark of 32 digits".to_owned() })
}
