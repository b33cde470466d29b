//! Gives objects back: as a whole where there is room for them in memory, and else a part of them as it comes.

use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;
use event::object::FoundObject;
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};

use super::container_target::{drain, expect_success, length};
use super::error::ObjectStoreError;
use super::exchange::passed;
use super::request::{ContainerRequest, words};
use super::service::Source;
use crate::read::{Lookup, ObjectCache, ObjectStoreReader, PieceSender};
use crate::{ObjectDownload, ObjectQuery};
use net::http_client::HttpResponse;
use sink::SinkError;

/// Of bytes that nobody has named.
const OCTETS: &str = "application/octet-stream";

/// A container as it is read.
pub struct ContainerReader<S>(pub S);

#[async_trait]
impl<S: Source> ObjectStoreReader for ContainerReader<S> {
    async fn look(&self, name: &str, known: Option<&str>, cache: &ObjectCache) -> Result<Lookup, SinkError> {
        self.find(name, known, cache).await.map_err(|failure| failure.into_sink_error(&self.0.name()))
    }

    async fn give(&self, named: (&str, &str), range: Range<u64>, sender: &PieceSender) -> Result<(), SinkError> {
        self.pass_on(named, range, sender).await.map_err(|failure| failure.into_sink_error(&self.0.name()))
    }
}

impl<S: Source> ContainerReader<S> {
    async fn find(&self, name: &str, known: Option<&str>, cache: &ObjectCache) -> Result<Lookup, ObjectStoreError> {
        let (found, answer) = match self.get(name, known).await? {
            Got::Missing => return Ok(Lookup::Missing),
            Got::Same => return Ok(Lookup::Same),
            Got::Object(found, answer) => (found, answer),
        };
        // One that there is no room for takes its connection with it.
        let content = match cache.place(found.bytes) {
            Some(place) => Some(place.filled(whole(*answer, name, found.bytes).await?)),
            None => None,
        };
        Ok(Lookup::Found(FoundObject { content, ..found }))
    }

    async fn get(&self, name: &str, known: Option<&str>) -> Result<Got, ObjectStoreError> {
        let ask = || with(ContainerRequest::of(Method::GET, Some(name)), header::IF_NONE_MATCH, known);
        let answer = self.0.send(ask).await?;
        match answer.status() {
            StatusCode::NOT_FOUND => {
                drain(answer).await;
                return Ok(Got::Missing);
            }
            StatusCode::NOT_MODIFIED if known.is_some() => {
                drain(answer).await;
                return Ok(Got::Same);
            }
            _ => {}
        }
        let answer = expect_success(answer, || doing(name)).await?;
        Ok(Got::Object(described(&answer, name)?, Box::new(answer)))
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
            return Err(unclear(name, "the part that was asked for"));
        }
        Ok(answer)
    }

    /// Gives an object to a gateway.
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
                    Got::Missing => ObjectDownload::Missing,
                    Got::Same => ObjectDownload::Same,
                    Got::Object(found, answer) => ObjectDownload::Found(found, passed(*answer)),
                },
                ObjectQuery::Part(etag, range) => {
                    let answer = self.get_part((name, etag), range).await?;
                    ObjectDownload::Found(described(&answer, name)?, passed(answer))
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

/// What a store gives.
enum Got {
    Missing,
    Same,
    Object(FoundObject, Box<HttpResponse>),
}

/// What an answer says of the object whose bytes it has. `bytes` are those of the answer.
fn described(answer: &HttpResponse, name: &str) -> Result<FoundObject, ObjectStoreError> {
    let etag = etag(answer.headers()).ok_or_else(|| unclear(name, "a strong ETag"))?;
    let bytes = length(answer).ok_or_else(|| unclear(name, "Content-Length"))?;
    let content_type = text(answer.headers(), header::CONTENT_TYPE).unwrap_or(OCTETS).into();
    Ok(FoundObject { etag, content_type, bytes, content: None })
}

/// All bytes of an answer, in as much memory.
async fn whole(mut answer: HttpResponse, name: &str, bytes: u64) -> Result<Vec<u8>, ObjectStoreError> {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    let mut whole = Vec::with_capacity(bytes);
    while let Some(piece) = answer.chunk().await? {
        append(&mut whole, &piece, bytes).ok_or_else(|| unclear(name, "the right Content-Length"))?;
    }
    if whole.len() == bytes { Ok(whole) } else { Err(unclear(name, "some of its bytes")) }
}

/// `None` where it would be more than there is room for.
fn append(whole: &mut Vec<u8>, piece: &Bytes, bytes_max: usize) -> Option<()> {
    (piece.len() <= bytes_max - whole.len()).then(|| whole.extend_from_slice(piece))
}

fn with<'a>(mut ask: ContainerRequest<'a>, name: HeaderName, value: Option<&str>) -> ContainerRequest<'a> {
    // What isn't a header's value is none of a store's tags.
    if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
        ask.headers.insert(name, value);
    }
    ask
}

fn doing(name: &str) -> String {
    words(&Method::GET, Some(name))
}

fn unclear(name: &str, missing: &str) -> ObjectStoreError {
    ObjectStoreError::Unclear { doing: doing(name), missing: missing.to_owned() }
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

/// The tag with its quotes, which Swift leaves out. A weak one doesn't tell bytes apart.
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
