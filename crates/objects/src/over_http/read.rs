//! Returns objects: as a whole if memory has room for them, or else a part of them as a stream.

use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;
use event::object::FoundObject;
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};

use super::container_target::{drain, expect_success, length};
use super::error::ObjectStoreError;
use super::exchange::streamed;
use super::request::{ContainerRequest, describe_request};
use super::service::Source;
use crate::read::{ObjectCache, ObjectLookup, ObjectStoreReader, PieceSender};
use crate::{ObjectDownload, ObjectQuery};
use net::http_client::HttpResponse;
use sink::SinkError;

/// The content type of bytes without one.
const OCTETS: &str = "application/octet-stream";

/// A container for readers.
pub struct ContainerReader<S>(pub S);

#[async_trait]
impl<S: Source> ObjectStoreReader for ContainerReader<S> {
    async fn look(&self, name: &str, known: Option<&str>, cache: &ObjectCache) -> Result<ObjectLookup, SinkError> {
        self.find(name, known, cache).await.map_err(|failure| failure.into_sink_error(&self.0.name()))
    }

    async fn give(&self, named: (&str, &str), range: Range<u64>, sender: &PieceSender) -> Result<(), SinkError> {
        self.pass_on(named, range, sender).await.map_err(|failure| failure.into_sink_error(&self.0.name()))
    }
}

impl<S: Source> ContainerReader<S> {
    async fn find(
        &self,
        name: &str,
        known: Option<&str>,
        cache: &ObjectCache,
    ) -> Result<ObjectLookup, ObjectStoreError> {
        let (found, answer) = match self.get(name, known).await? {
            Response::Missing => return Ok(ObjectLookup::Missing),
            Response::Same => return Ok(ObjectLookup::Same),
            Response::Object(found, answer) => (found, answer),
        };
        // An object without room is dropped with its connection.
        let content = match cache.place(found.bytes) {
            Some(place) => Some(place.filled(whole(*answer, name, found.bytes).await?)),
            None => None,
        };
        Ok(ObjectLookup::Found(FoundObject { content, ..found }))
    }

    async fn get(&self, name: &str, known: Option<&str>) -> Result<Response, ObjectStoreError> {
        let ask = || with(ContainerRequest::of(Method::GET, Some(name)), header::IF_NONE_MATCH, known);
        let answer = self.0.send(ask).await?;
        match answer.status() {
            StatusCode::NOT_FOUND => {
                drain(answer).await;
                return Ok(Response::Missing);
            }
            StatusCode::NOT_MODIFIED if known.is_some() => {
                drain(answer).await;
                return Ok(Response::Same);
            }
            _ => {}
        }
        let answer = expect_success(answer, || doing(name)).await?;
        Ok(Response::Object(described(&answer, name)?, Box::new(answer)))
    }

    /// A part of the object with this tag.
    async fn get_part(&self, (name, etag): (&str, &str), range: &Range<u64>) -> Result<HttpResponse, ObjectStoreError> {
        let part = format!("bytes={}-{}", range.start, range.end - 1);
        let ask = || {
            with(
                with(ContainerRequest::of(Method::GET, Some(name)), header::IF_MATCH, Some(etag)),
                header::RANGE,
                Some(&part),
            )
        };
        let answer = expect_success(self.0.send(ask).await?, || doing(name)).await?;
        if answer.status() != StatusCode::PARTIAL_CONTENT || length(&answer) != Some(range.end - range.start) {
            return Err(unclear(name, "the requested part"));
        }
        Ok(answer)
    }

    /// Returns an object to a gateway.
    ///
    /// # Errors
    /// [`ObjectStoreError`] if the store doesn't answer, or if the object of a requested part has changed.
    pub fn fetch<'a>(
        &'a self,
        name: &'a str,
        query: &'a ObjectQuery,
    ) -> BoxFuture<'a, Result<ObjectDownload, ObjectStoreError>> {
        Box::pin(async move {
            Ok(match query {
                ObjectQuery::Unless(known) => match self.get(name, known.as_deref()).await? {
                    Response::Missing => ObjectDownload::Missing,
                    Response::Same => ObjectDownload::Same,
                    Response::Object(found, answer) => ObjectDownload::Found(found, streamed(*answer)),
                },
                ObjectQuery::Part(etag, range) => {
                    let answer = self.get_part((name, etag), range).await?;
                    ObjectDownload::Found(described(&answer, name)?, streamed(answer))
                }
            })
        })
    }

    async fn pass_on(
        &self,
        (name, etag): (&str, &str),
        range: Range<u64>,
        sender: &PieceSender,
    ) -> Result<(), ObjectStoreError> {
        let mut answer = self.get_part((name, etag), &range).await?;
        let mut given = sender.begin().await;
        while given.is_ok()
            && let Some(piece) = answer.chunk().await?
        {
            given = sender.give(piece).await;
        }
        Ok(())
    }
}

/// The response of a store.
enum Response {
    Missing,
    Same,
    Object(FoundObject, Box<HttpResponse>),
}

/// The properties of the object in a response. `bytes` is the response's size.
fn described(answer: &HttpResponse, name: &str) -> Result<FoundObject, ObjectStoreError> {
    let etag = etag(answer.headers()).ok_or_else(|| unclear(name, "a strong ETag"))?;
    let bytes = length(answer).ok_or_else(|| unclear(name, "Content-Length"))?;
    let content_type = text(answer.headers(), header::CONTENT_TYPE).unwrap_or(OCTETS).into();
    Ok(FoundObject { etag, content_type, bytes, content: None })
}

/// All bytes of a response, in as much memory.
async fn whole(mut answer: HttpResponse, name: &str, bytes: u64) -> Result<Vec<u8>, ObjectStoreError> {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    let mut whole = Vec::with_capacity(bytes);
    while let Some(piece) = answer.chunk().await? {
        append(&mut whole, &piece, bytes).ok_or_else(|| unclear(name, "the right Content-Length"))?;
    }
    if whole.len() == bytes { Ok(whole) } else { Err(unclear(name, "some of its bytes")) }
}

/// `None` if it would be more than there is room for.
fn append(whole: &mut Vec<u8>, piece: &Bytes, bytes_max: usize) -> Option<()> {
    (piece.len() <= bytes_max - whole.len()).then(|| whole.extend_from_slice(piece))
}

fn with<'a>(mut ask: ContainerRequest<'a>, name: HeaderName, value: Option<&str>) -> ContainerRequest<'a> {
    // A text that can't be a header's value isn't a store's tag.
    if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
        ask.headers.insert(name, value);
    }
    ask
}

fn doing(name: &str) -> String {
    describe_request(&Method::GET, Some(name))
}

fn unclear(name: &str, missing: &str) -> ObjectStoreError {
    ObjectStoreError::Unclear { doing: doing(name), missing: missing.to_owned() }
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

/// The tag with its quotes, which Swift omits. A weak tag doesn't identify bytes.
fn etag(headers: &HeaderMap) -> Option<Box<str>> {
    let tag = text(headers, header::ETAG)?;
    let bare = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"')).unwrap_or(tag);
    let is_tag = !bare.is_empty() && bare.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"');
    (is_tag && !tag.starts_with("W/")).then(|| format!("\"{bare}\"").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_strong_and_have_quotes() {
        let of = |tag: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ETAG, tag.try_into().unwrap());
            etag(&headers).map(String::from)
        };
        assert_eq!(of("abc").as_deref(), Some("\"abc\""));
        assert_eq!(of("\"abc-2\"").as_deref(), Some("\"abc-2\""));
        for none in ["W/\"abc\"", "", "\"\"", "\"a\"b\"", "a b"] {
            assert_eq!(of(none), None, "{none}");
        }
    }
}
