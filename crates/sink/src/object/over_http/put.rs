//! Puts an object and its description, and finds out what is there where the name is taken.

use std::sync::atomic::{AtomicBool, Ordering};

use http::{Method, StatusCode, header};
use sha2::{Digest, Sha256};

use super::ask::{Ask, words};
use super::body::Body;
use super::coded::{Coded, Digests};
use super::failure::Failure;
use super::service::Service;
use crate::http_client::Answer;
use crate::object::description::{self, hexadecimal};
use crate::object::{Codec, Manifest, ObjectRules, Parts};

/// Bytes that are read of a refusal.
const REFUSAL_BYTES_MAX: usize = 16 * 1024;
/// Characters of it that are shown.
const SAID_MAX: usize = 200;
const DESCRIPTION: &str = "application/json";

/// What stands under a name.
#[derive(Debug, PartialEq, Eq)]
enum There {
    Same,
    Other,
    Nothing,
}

/// A service's container and how large its objects are.
pub(super) struct Store {
    service: Service,
    pub(super) rules: ObjectRules,
    /// Whether it knows `If-None-Match: *`.
    keeps_names: AtomicBool,
}

impl Store {
    pub(super) fn new(service: Service, rules: ObjectRules) -> Self {
        Self { service, rules, keeps_names: AtomicBool::new(true) }
    }

    pub(super) fn name(&self) -> String {
        self.service.name()
    }

    /// Makes what objects are kept in, if it is missing.
    pub(super) async fn prepare(&self) -> Result<(), Failure> {
        let shown = self.service.send(|| Ask::of(Method::HEAD, None)).await?;
        if shown.status() != StatusCode::NOT_FOUND {
            return settle(shown, &Method::HEAD, None).await;
        }
        let made = self.service.send(|| self.service.make_container()).await?;
        // Somebody else was quicker.
        if made.status() == StatusCode::CONFLICT {
            return Ok(());
        }
        settle(made, &Method::PUT, None).await
    }

    /// Puts the object and its description, each of which is there already or isn't.
    pub(super) async fn put<P: Parts>(&self, manifest: &Manifest, parts: P) -> Result<P, Failure> {
        let coded = Coded::make(manifest, parts).await?;
        self.put_object(manifest, &coded).await.map_err(|failure| coded.trouble().unwrap_or(failure))?;
        let text = description::text(manifest, &coded.sealed);
        self.describe(&description::name(&manifest.name), text.into()).await?;
        Ok(coded.into_parts())
    }

    async fn put_object<P: Parts>(&self, manifest: &Manifest, coded: &Coded<P>) -> Result<(), Failure> {
        let name = manifest.name.as_str();
        // A server that has the name may end the connection in the middle of a large body, and its answer with it.
        if coded.is_made_again() || !self.keeps_names.load(Ordering::Relaxed) {
            match self.look(name, coded.digests).await? {
                There::Same => return self.put_again(manifest, coded).await,
                There::Other => return Err(Failure::Taken { object: name.to_owned() }),
                There::Nothing => {}
            }
        }
        let is_new = self.keeps_names.load(Ordering::Relaxed);
        let answer = self.send_object(manifest, coded, is_new).await?;
        match answer.status() {
            StatusCode::PRECONDITION_FAILED => match self.look(name, coded.digests).await? {
                There::Same => self.put_again(manifest, coded).await,
                There::Other => Err(Failure::Taken { object: name.to_owned() }),
                There::Nothing => Err(Failure::Unsettled { object: name.to_owned() }),
            },
            // Some services of the same protocol don't know the condition: then what is there is looked at before.
            StatusCode::NOT_IMPLEMENTED if is_new => {
                self.keeps_names.store(false, Ordering::Relaxed);
                Box::pin(self.put_object(manifest, coded)).await
            }
            _ => self.confirm(answer, name, coded.digests).await,
        }
    }

    /// Puts what is there once more, if it may be missing from the list of what is there.
    async fn put_again<P: Parts>(&self, manifest: &Manifest, coded: &Coded<P>) -> Result<(), Failure> {
        if !self.service.lists_apart() {
            return Ok(());
        }
        let answer = self.send_object(manifest, coded, false).await?;
        self.confirm(answer, &manifest.name, coded.digests).await
    }

    async fn send_object<P: Parts>(
        &self,
        manifest: &Manifest,
        coded: &Coded<P>,
        is_new: bool,
    ) -> Result<Answer, Failure> {
        let ask = || {
            let ask = Ask::put(&manifest.name, coded.body(), coded.digests, content_type(manifest.codec));
            if is_new { ask.with(header::IF_NONE_MATCH, "*") } else { ask }
        };
        self.send_into_container(&ask).await
    }

    async fn describe(&self, name: &str, text: bytes::Bytes) -> Result<(), Failure> {
        let digests = Digests::of(&text);
        let ask = || Ask::put(name, Body::Whole(text.clone()), digests, DESCRIPTION);
        let answer = self.send_into_container(&ask).await?;
        self.confirm(answer, name, digests).await
    }

    /// Makes the container anew where somebody has removed it.
    async fn send_into_container<'a>(&self, ask: &(impl Fn() -> Ask<'a> + Send + Sync)) -> Result<Answer, Failure> {
        let answer = self.service.send(ask).await?;
        if answer.status() != StatusCode::NOT_FOUND {
            return Ok(answer);
        }
        self.prepare().await?;
        self.service.send(ask).await
    }

    /// Believes that something was stored only where the store names its digest, or gives the same bytes back.
    async fn confirm(&self, answer: Answer, name: &str, digests: Digests) -> Result<(), Failure> {
        let is_confirmed = has_digest(&answer, digests);
        settle(answer, &Method::PUT, Some(name)).await?;
        if is_confirmed {
            return Ok(());
        }
        let object = name.to_owned();
        match self.look(name, digests).await? {
            There::Same => Ok(()),
            There::Other => Err(Failure::Damaged { object }),
            There::Nothing => Err(Failure::Unsettled { object }),
        }
    }

    /// What stands under the name: by length and digest as the store names it, or else by what it gives.
    async fn look(&self, name: &str, digests: Digests) -> Result<There, Failure> {
        let shown = self.service.send(|| Ask::of(Method::HEAD, Some(name))).await?;
        if shown.status() == StatusCode::NOT_FOUND {
            return Ok(There::Nothing);
        }
        let (bytes, is_same) = (length(&shown), has_digest(&shown, digests));
        settle(shown, &Method::HEAD, Some(name)).await?;
        if bytes.is_some_and(|bytes| bytes != digests.bytes) {
            return Ok(There::Other);
        }
        if is_same { Ok(There::Same) } else { self.read(name, digests).await }
    }

    async fn read(&self, name: &str, digests: Digests) -> Result<There, Failure> {
        let given = self.service.send(|| Ask::of(Method::GET, Some(name))).await?;
        if given.status() == StatusCode::NOT_FOUND {
            return Ok(There::Nothing);
        }
        let mut given = expect_success(given, || words(&Method::GET, Some(name))).await?;
        let (mut sha256, mut bytes) = (Sha256::new(), 0);
        while let Some(piece) = given.chunk().await? {
            sha256.update(&piece);
            bytes += piece.len() as u64;
        }
        let found: [u8; 32] = sha256.finalize().into();
        let is_same = bytes == digests.bytes && found == digests.sha256;
        Ok(if is_same { There::Same } else { There::Other })
    }
}

const fn content_type(codec: Codec) -> &'static str {
    match codec {
        Codec::None => "application/x-ndjson",
        Codec::Gzip => "application/gzip",
        Codec::Zstd => "application/zstd",
    }
}

fn length(answer: &Answer) -> Option<u64> {
    answer.headers().get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Whether the answer's entity tag is the MD5 of the bytes, as it is of every object that was stored as a whole and not encrypted.
fn has_digest(answer: &Answer, digests: Digests) -> bool {
    let tag = answer.headers().get(header::ETAG).and_then(|tag| tag.to_str().ok());
    tag.is_some_and(|tag| tag.trim_matches('"').eq_ignore_ascii_case(&hexadecimal(&digests.md5)))
}

/// Takes an answer that is of no use but for its status.
async fn settle(answer: Answer, method: &Method, object: Option<&str>) -> Result<(), Failure> {
    let answer = expect_success(answer, || words(method, object)).await?;
    drain(answer).await;
    Ok(())
}

/// Reads an answer to its end, so that its connection can be used again. Where that fails another one is made.
pub(super) async fn drain(answer: Answer) {
    let _ = answer.bytes(REFUSAL_BYTES_MAX).await;
}

pub(super) async fn expect_success(answer: Answer, doing: impl Fn() -> String) -> Result<Answer, Failure> {
    if answer.status().is_success() {
        return Ok(answer);
    }
    let status = answer.status();
    let said = said(answer).await;
    if status == StatusCode::UNAUTHORIZED {
        return Err(Failure::Stranger { said });
    }
    Err(Failure::Answered { doing: doing(), status, said })
}

/// The words of a refusal, without the tags that they stand between.
async fn said(answer: Answer) -> String {
    // Where its words can't be read, the status must do.
    let text = answer.bytes(REFUSAL_BYTES_MAX).await.unwrap_or_default();
    plain(&String::from_utf8_lossy(&text))
}

fn plain(text: &str) -> String {
    let (mut words, mut is_tag) = (String::new(), false);
    for character in text.chars() {
        match character {
            '<' => is_tag = true,
            '>' => {
                is_tag = false;
                words.push(' ');
            }
            _ if is_tag => {}
            _ if character.is_control() => words.push(' '),
            _ => words.push(character),
        }
    }
    let words: Vec<&str> = words.split_whitespace().collect();
    words.join(" ").chars().take(SAID_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_shown_without_tags() {
        for (text, shown) in [
            ("<html><h1>Forbidden</h1><p>Access was denied.</p></html>", "Forbidden Access was denied."),
            ("<?xml version='1.0'?>\n<Error><Code>NoSuchBucket</Code></Error>", "NoSuchBucket"),
            ("plain\r\n\u{1b}[31mtext", "plain [31mtext"),
            ("", ""),
        ] {
            assert_eq!(plain(text), shown);
        }
        assert_eq!(plain(&"é".repeat(300)).chars().count(), SAID_MAX);
    }
}
