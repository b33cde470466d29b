//! What a protocol implements: the routes of an intake, and one request that posts records.

use std::borrow::Cow;
use std::fmt;

use crate::{IntakeHead, Problem, Records, Reply, Stop, Verdicts};

/// A configured intake.
pub trait Intake: fmt::Debug + Send + Sync {
    /// What serves a request. `head.path` is relative to the intake's root and begins with a slash, unless it is empty.
    fn route(&self, head: &IntakeHead<'_>) -> IntakeRoute;

    /// The response to a request that has no [`IntakeCall`] and is rejected: an unknown path, or a fixed response that needs a token.
    fn refusal(&self, problem: &Problem) -> Reply;

    /// The types that its records have by the protocol alone. Forebay reserves their places among the types under `"*"`: a sender that makes
    /// names up can't take them.
    fn types(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether signatures prove who sends its requests. They need no token then, and their source is the intake's name.
    fn is_signed(&self) -> bool {
        false
    }
}

/// What serves a request.
pub enum IntakeRoute {
    /// It posts records.
    Ingest(Box<dyn IntakeCall>),
    /// A response that doesn't depend on the body. It needs a token where posting needs one.
    Fixed(Reply),
    /// The same without a token: a handshake, or a health check.
    Free(Reply),
    /// The path has these methods, as `Allow` lists them.
    Methods(&'static str),
    /// The protocol has no such path.
    Unknown,
}

/// One request that posts records. It owns what it needs of the head.
pub trait IntakeCall: Send {
    /// Whether the token may be in the body. If so, a request whose head has none is read first.
    fn may_have_token(&self) -> bool {
        false
    }

    /// The token in the decoded body. It may be any text.
    fn token<'b>(&self, _body: &'b [u8]) -> Option<Cow<'b, str>> {
        None
    }

    /// Whether [`IntakeCall::decode`] expects bodies in this `Content-Encoding`, which isn't one of HTTP's.
    fn decodes(&self, _coding: &str) -> bool {
        false
    }

    /// Bytes of memory that [`IntakeCall::decode`] needs at most for a time, in addition to the body and what it passes on.
    fn needed_bytes(&self, _body: &[u8]) -> usize {
        0
    }

    /// What distinguishes two requests with equal bodies, in addition to their paths and queries.
    fn scope(&self) -> &str {
        ""
    }

    /// Whether a second request with the same body is a retry of the first one. If not, records without an id are stored each time.
    fn is_repeatable(&self, _body: &[u8]) -> bool {
        true
    }

    /// Passes the records of the decoded body on, in the order of the body. A second call begins from the start: it passes the same records.
    ///
    /// # Errors
    /// [`Stop::Rejected`]: the request as a whole is rejected, regardless of what was passed on. [`Stop::Paused`]: [`Records`] has no room;
    /// the caller calls again.
    fn decode(&mut self, body: &[u8], records: &mut Records<'_>) -> Result<(), Stop>;

    /// Bytes that it keeps for its response after [`IntakeCall::decode`].
    fn kept_bytes(&self) -> usize {
        0
    }

    /// Whether one rejected record rejects all of them.
    fn is_atomic(&self) -> bool {
        false
    }

    /// The response, with a verdict for each record that was passed on.
    fn response(&self, verdicts: &Verdicts) -> Reply;

    /// The response if the request as a whole is rejected.
    fn refusal(&self, problem: &Problem) -> Reply;
}

impl fmt::Debug for IntakeRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ingest(_) => f.write_str("Ingest"),
            Self::Fixed(reply) => f.debug_tuple("Fixed").field(reply).finish(),
            Self::Free(reply) => f.debug_tuple("Free").field(reply).finish(),
            Self::Methods(methods) => f.debug_tuple("Methods").field(methods).finish(),
            Self::Unknown => f.write_str("Unknown"),
        }
    }
}
