//! Why a request as a whole is rejected.

use std::borrow::Cow;

/// Why a request is rejected, in the kinds that protocols distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    /// It is not what the protocol describes.
    Invalid,
    /// The body has nothing in it.
    Empty,
    /// It has no token, or an invalid one.
    Unauthorized,
    /// Its token doesn't allow this.
    Forbidden,
    /// It has no valid signature.
    Signature,
    /// It has too many bytes or records.
    TooLarge,
    /// Its content type or coding isn't supported.
    Unsupported,
    /// The path isn't known.
    NotFound,
    /// The path has other methods.
    Method,
    /// It arrived too slowly.
    Timeout,
    /// It can be sent again unchanged after a second. Every kind of temporary trouble is this one: other statuses than 503 are final for
    /// some senders.
    Unavailable,
}

/// Why a request as a whole is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What protocols distinguish.
    pub kind: ProblemKind,
    /// The stable name of the reason.
    pub code: &'static str,
    /// What failed, why, and what to do.
    pub detail: Cow<'static, str>,
}

/// Why [`IntakeCall::decode`](crate::IntakeCall::decode) ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// There is no room for further records now.
    Paused,
    /// The request as a whole is rejected.
    Rejected(Problem),
}

impl Problem {
    /// A request that isn't what its protocol describes.
    #[must_use]
    pub fn invalid(detail: impl Into<Cow<'static, str>>) -> Self {
        Self { kind: ProblemKind::Invalid, code: "record", detail: detail.into() }
    }

    /// A request whose body is empty.
    #[must_use]
    pub fn empty(detail: impl Into<Cow<'static, str>>) -> Self {
        Self { kind: ProblemKind::Empty, ..Self::invalid(detail) }
    }

    /// A request without a valid signature.
    #[must_use]
    pub fn signature(detail: impl Into<Cow<'static, str>>) -> Self {
        Self { kind: ProblemKind::Signature, code: "signature", detail: detail.into() }
    }

    /// A request with too many bytes.
    #[must_use]
    pub fn too_large(detail: impl Into<Cow<'static, str>>) -> Self {
        Self { kind: ProblemKind::TooLarge, code: "too_large", detail: detail.into() }
    }

    /// The status of its response.
    #[must_use]
    pub const fn status(&self) -> u16 {
        match self.kind {
            ProblemKind::Invalid | ProblemKind::Empty => 400,
            ProblemKind::Unauthorized | ProblemKind::Signature => 401,
            ProblemKind::Forbidden => 403,
            ProblemKind::NotFound => 404,
            ProblemKind::Method => 405,
            ProblemKind::Timeout => 408,
            ProblemKind::TooLarge => 413,
            ProblemKind::Unsupported => 415,
            ProblemKind::Unavailable => 503,
        }
    }
}

impl From<Problem> for Stop {
    fn from(problem: Problem) -> Self {
        Self::Rejected(problem)
    }
}
