//! Verifies requests: the signature over the bytes that were received, then the time that is signed.

use std::borrow::Cow;
use std::time::Duration;

use ring::digest;

use json::JsonPointer;

use crate::{IntakeHead, Problem};

use super::algorithm::{Algorithm, Secret};
use super::form;
use super::port;
use super::scheme::{Id, Part, Scheme, Time};

/// From this number of digits on, a time is in milliseconds.
const DIGITS_OF_MILLISECONDS: usize = 12;

/// Verifies requests of one provider.
#[derive(Debug)]
pub(super) struct Verifier {
    pub(super) schemes: Vec<Scheme>,
    /// Each is valid.
    pub(super) secrets: Vec<Secret>,
    /// How far the signed time may be from now.
    pub(super) tolerance: Duration,
    /// The URL of the intake at the provider, without its query.
    pub(super) url: Option<String>,
}

/// What the head of a request says about its signature.
#[derive(Debug)]
pub(super) struct Evidence {
    /// The number of the scheme, and its header.
    signature: Option<(usize, String)>,
    time: Option<String>,
    id: Option<String>,
    url: String,
    /// The digest of a body that isn't a form, which Twilio puts into the query.
    body_digest: Option<String>,
    received_at: i64,
}

/// A verified request.
#[derive(Debug)]
pub(super) struct Verified {
    id: String,
}

impl Verifier {
    /// What a head says about the signature.
    pub(super) fn evidence(&self, head: &IntakeHead<'_>) -> Evidence {
        let find = |(number, scheme): (usize, &Scheme)| Some((number, head.header(&scheme.header)?.to_owned()));
        let signature = self.schemes.iter().enumerate().find_map(find);
        let scheme = signature.as_ref().map(|(number, _)| &self.schemes[*number]);
        let time = scheme.zip(signature.as_ref()).and_then(|(scheme, (_, header))| match &scheme.time {
            Time::None => None,
            Time::Header(name) => head.header(name).map(str::to_owned),
            Time::Element(prefix) => {
                scheme.elements(header).find_map(|element| element.strip_prefix(prefix.as_ref())).map(str::to_owned)
            }
        });
        let id = scheme.and_then(|scheme| match &scheme.id {
            Id::Header(name) => head.header(name).map(str::to_owned),
            Id::Signed | Id::Member(_) => None,
        });
        let has_url = scheme.is_some_and(|scheme| scheme.signed.contains(&Part::Url));
        let body_digest = if has_url { head.parameter("bodySHA256") } else { None };
        let url = if has_url { self.url_of(head) } else { String::new() };
        Evidence { signature, time, id, url, body_digest, received_at: head.received_at }
    }

    /// The URL that the provider has called. Behind a proxy only the setting has it.
    fn url_of(&self, head: &IntakeHead<'_>) -> String {
        match &self.url {
            Some(url) if head.query.is_empty() => url.clone(),
            Some(url) => format!("{url}?{}", head.query),
            None => {
                let scheme = if head.has_tls { "https" } else { "http" };
                format!("{scheme}://{}{}", head.header("host").unwrap_or_default(), head.target)
            }
        }
    }

    /// Verifies a request.
    ///
    /// # Errors
    /// The signature isn't valid, or too old.
    pub(super) fn check(&self, evidence: &Evidence, body: &[u8]) -> Result<Verified, Problem> {
        let Some((number, header)) = &evidence.signature else { return Err(missing(&self.schemes[0].header)) };
        let scheme = &self.schemes[*number];
        let form = if scheme.signed.contains(&Part::Form) { signed_form(evidence, body)? } else { String::new() };
        let pieces = pieces(scheme, evidence, &evidence.url, body, &form)?;
        if !self.is_signed(scheme, header, &pieces) && !self.is_signed_with_port(evidence, header, body, &form) {
            return Err(Problem::signature(
                "no signature of the request is valid: compare the intake's `secrets` with the sender's, and don't change requests in between",
            ));
        }
        if let Some(time) = &evidence.time {
            self.check_time(time, evidence.received_at)?;
        }
        Ok(Verified { id: id(scheme, evidence, body, &pieces) })
    }

    fn is_signed(&self, scheme: &Scheme, header: &str, pieces: &[&[u8]]) -> bool {
        if scheme.algorithms == [Algorithm::Token] {
            return self.secrets.iter().any(|secret| secret.is(header.as_bytes()));
        }
        let elements = scheme.elements(header).filter_map(|element| element.strip_prefix(scheme.prefix.as_ref()));
        let signatures: Vec<Vec<u8>> = elements.filter_map(|text| scheme.encoding.decode(text)).collect();
        // The body is read once for each secret, however many signatures there are.
        self.secrets.iter().any(|secret| {
            let expected = secret.sign(pieces);
            signatures.iter().any(|signature| super::algorithm::is_equal(signature, expected.as_ref()))
        })
    }

    /// Whether the URL is signed in its other form: Twilio writes the default port sometimes.
    fn is_signed_with_port(&self, evidence: &Evidence, header: &str, body: &[u8], form: &str) -> bool {
        let Some((number, _)) = &evidence.signature else { return false };
        let scheme = &self.schemes[*number];
        let has_url = scheme.signed.contains(&Part::Url);
        let Some(url) = port::other_form(&evidence.url).filter(|_| has_url) else { return false };
        pieces(scheme, evidence, &url, body, form).is_ok_and(|pieces| self.is_signed(scheme, header, &pieces))
    }

    fn check_time(&self, time: &str, received_at: i64) -> Result<(), Problem> {
        let number = text::time_fields::digits(time).unwrap_or(0);
        let unit = if time.len() < DIGITS_OF_MILLISECONDS { 1_000_000 } else { 1_000 };
        let distance = received_at.abs_diff(number.saturating_mul(unit));
        if u128::from(distance) > self.tolerance.as_micros() {
            let seconds = distance / 1_000_000;
            return Err(Problem::signature(format!(
                "the signature is {seconds} s from this server's time, and `tolerance` is {} s: it may be a replay, or a clock is wrong",
                self.tolerance.as_secs()
            )));
        }
        Ok(())
    }
}

impl Verified {
    /// The id of the event.
    pub(super) fn id(&self) -> &str {
        &self.id
    }
}

fn missing(header: &str) -> Problem {
    Problem::signature(format!(
        "the request has no header `{header}`: set the secret at the sender, or another `provider` in the intake's table"
    ))
}

/// The pieces of the signed text.
fn pieces<'p>(
    scheme: &'p Scheme,
    evidence: &'p Evidence,
    url: &'p str,
    body: &'p [u8],
    form: &'p str,
) -> Result<Vec<&'p [u8]>, Problem> {
    let piece = |part: &'p Part| match part {
        Part::Text(text) => Ok(text.as_bytes()),
        Part::Body => Ok(body),
        Part::Url => Ok(url.as_bytes()),
        Part::Form => Ok(form.as_bytes()),
        Part::Time => match evidence.time.as_deref().filter(|time| text::time_fields::digits(time).is_some()) {
            Some(time) => Ok(time.as_bytes()),
            None => Err(Problem::signature("the time of the signature is missing, or isn't a number of digits")),
        },
        Part::Id => match evidence.id.as_deref().filter(|id| is_closed(scheme, id)) {
            Some(id) => Ok(id.as_bytes()),
            None => {
                Err(Problem::signature("the header of the id is missing, or has a separator of the signed text in it"))
            }
        },
    };
    scheme.signed.iter().map(piece).collect()
}

/// Whether an id can't continue in the part after it: bytes of one could be moved to the other, and the signature would stay valid.
fn is_closed(scheme: &Scheme, id: &str) -> bool {
    let after = scheme.signed.windows(2).find(|pair| pair[0] == Part::Id);
    match after {
        Some([_, Part::Text(text)]) => !id.is_empty() && !id.contains(text.as_ref()),
        _ => !id.is_empty(),
    }
}

/// The parameters of a form as they are signed. If the query has the digest of the body, the body isn't a form.
fn signed_form(evidence: &Evidence, body: &[u8]) -> Result<String, Problem> {
    let Some(signed) = &evidence.body_digest else { return Ok(form::sorted(&form::pairs(body)?)) };
    let digest = text::hex::encode(digest::digest(&digest::SHA256, body).as_ref());
    if super::algorithm::is_equal(digest.as_bytes(), signed.to_ascii_lowercase().as_bytes()) {
        return Ok(String::new());
    }
    Err(Problem::signature("the body isn't the one whose digest is in the query (`bodySHA256`)"))
}

/// The id of the event. The digest covers the signed text and not the request: if a signature allows several requests, only the first
/// one is stored.
fn id(scheme: &Scheme, evidence: &Evidence, body: &[u8], pieces: &[&[u8]]) -> String {
    let sent = match &scheme.id {
        Id::Signed => None,
        Id::Header(_) => evidence.id.as_deref().map(Cow::Borrowed),
        Id::Member(pointer) => member(body, pointer),
    };
    sent.map_or_else(
        || {
            let mut context = digest::Context::new(&digest::SHA256);
            pieces.iter().for_each(|piece| context.update(piece));
            text::hex::encode(context.finish().as_ref())
        },
        Cow::into_owned,
    )
}

/// The text of a member. The body needn't be JSON: nothing is found then, or the pipeline rejects what is.
fn member<'b>(body: &'b [u8], pointer: &str) -> Option<Cow<'b, str>> {
    let body = str::from_utf8(body).ok()?.trim_ascii_start();
    let pointer: JsonPointer = pointer.parse().ok()?;
    json::text::scalar(pointer.lookup(body)?).filter(|id| !id.is_empty())
}
