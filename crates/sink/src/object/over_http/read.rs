//! Gives objects back: as a whole where there is room for them in memory, and else a part of them as it comes.

use std::ops::Range;

use bytes::Bytes;
use event::object::FoundObject;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};

use super::ask::{Ask, words};
use super::exchange::passed;
use super::failure::Failure;
use super::put::{drain, expect_success, length};
use super::service::Service;
use super::writer::WriterSink;
use crate::SinkError;
use crate::object::read::{Looked, ObjectCache, Sender};
use crate::object::{ObjectDownload, ObjectQuery};
use net::http_client::Answer;

/// Of bytes that nobody has named.
const OCTETS: &str = "application/octet-stream";

/// A service's container as it is read.
pub(in crate::object) struct ReadOverHttp(pub(super) Source);

/// Which of them it is.
pub(super) enum Source {
    /// By a request to the service.
    Service(Box<Service>),
    /// Through a writer.
    Writer(WriterSink),
}

impl ReadOverHttp {
    fn name(&self) -> String {
        match &self.0 {
            Source::Service(service) => service.name(),
            Source::Writer(writer) => writer.name(),
        }
    }

    /// Asks for an object, by what a store of any kind understands.
    async fn send<'a>(&self, ask: impl Fn() -> Ask<'a> + Send + Sync) -> Result<Answer, Failure> {
        match &self.0 {
            Source::Service(service) => service.send(ask).await,
            Source::Writer(writer) => {
                let Ask { object, headers, .. } = ask();
                writer.get(object.unwrap_or_default(), &headers).await
            }
        }
    }

    /// What stands under a name, unless it has the tag that is known.
    pub(in crate::object) async fn look(
        &self,
        name: &str,
        known: Option<&str>,
        cache: &ObjectCache,
    ) -> Result<Looked, SinkError> {
        self.find(name, known, cache).await.map_err(|failure| failure.into_sink_error(&self.name()))
    }

    /// Gives some bytes of the object with this tag. Whoever waits for them may leave.
    pub(in crate::object) async fn give(
        &self,
        named: (&str, &str),
        range: Range<u64>,
        sender: &Sender,
    ) -> Result<(), SinkError> {
        self.pass_on(named, range, sender).await.map_err(|failure| failure.into_sink_error(&self.name()))
    }

    async fn find(&self, name: &str, known: Option<&str>, cache: &ObjectCache) -> Result<Looked, Failure> {
        let (found, answer) = match self.get(name, known).await? {
            Got::Missing => return Ok(Looked::Missing),
            Got::Same => return Ok(Looked::Same),
            Got::Object(found, answer) => (found, answer),
        };
        // One that there is no room for takes its connection with it.
        let content = match cache.place(found.bytes) {
            Some(place) => Some(place.filled(whole(*answer, name, found.bytes).await?)),
            None => None,
        };
        Ok(Looked::Found(FoundObject { content, ..found }))
    }

    async fn get(&self, name: &str, known: Option<&str>) -> Result<Got, Failure> {
        let ask = || with(Ask::of(Method::GET, Some(name)), header::IF_NONE_MATCH, known);
        let answer = self.send(ask).await?;
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
    async fn get_part(&self, (name, etag): (&str, &str), range: &Range<u64>) -> Result<Answer, Failure> {
        let part = format!("bytes={}-{}", range.start, range.end - 1);
        let ask =
            || with(with(Ask::of(Method::GET, Some(name)), header::IF_MATCH, Some(etag)), header::RANGE, Some(&part));
        let answer = expect_success(self.send(ask).await?, || doing(name)).await?;
        if answer.status() != StatusCode::PARTIAL_CONTENT || length(&answer) != Some(range.end - range.start) {
            return Err(unclear(name, "the part that was asked for"));
        }
        Ok(answer)
    }

    /// Gives an object to a gateway.
    pub(super) async fn fetch(&self, name: &str, query: &ObjectQuery) -> Result<ObjectDownload, Failure> {
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
    }

    async fn pass_on(&self, (name, etag): (&str, &str), range: Range<u64>, sender: &Sender) -> Result<(), Failure> {
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
    Object(FoundObject, Box<Answer>),
}

/// What an answer says of the object whose bytes it has. `bytes` are those of the answer.
fn described(answer: &Answer, name: &str) -> Result<FoundObject, Failure> {
    let etag = etag(answer.headers()).ok_or_else(|| unclear(name, "a strong ETag"))?;
    let bytes = length(answer).ok_or_else(|| unclear(name, "Content-Length"))?;
    let content_type = text(answer.headers(), header::CONTENT_TYPE).unwrap_or(OCTETS).into();
    Ok(FoundObject { etag, content_type, bytes, content: None })
}

/// All bytes of an answer, in as much memory.
async fn whole(mut answer: Answer, name: &str, bytes: u64) -> Result<Vec<u8>, Failure> {
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

fn with<'a>(mut ask: Ask<'a>, name: HeaderName, value: Option<&str>) -> Ask<'a> {
    // What isn't a header's value is none of a store's tags.
    if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
        ask.headers.insert(name, value);
    }
    ask
}

fn doing(name: &str) -> String {
    words(&Method::GET, Some(name))
}

fn unclear(name: &str, missing: &str) -> Failure {
    Failure::Unclear { doing: doing(name), missing: missing.to_owned() }
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
