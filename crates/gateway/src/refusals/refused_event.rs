//! A rejected event that is stored as an event of another type, as its type's `refused_to` says.

use std::sync::Arc;

use event::TypeName;
use sha2::{Digest, Sha256};

use crate::error_code::ErrorCode;
use crate::event_types::{RefusedTo, TypeRegistry};
use crate::problem::Problem;

/// The first bytes of an event that are kept.
pub(super) const HEAD_BYTES_MAX: usize = 4 * 1024;
/// Bytes of the pointer, and of the detail, that are kept: both may quote what a client sent.
const TEXT_BYTES_MAX: usize = 500;

/// A rejected event, with what is kept of it.
#[derive(Debug)]
pub(crate) struct RefusedEvent {
    pub(super) refused_to: Arc<RefusedTo>,
    pub(super) type_name: TypeName,
    pub(super) code: ErrorCode,
    /// This and the detail are none if the type's transform hides something: names of members may be values, and the detail may show some.
    pub(super) pointer: Option<Box<str>>,
    pub(super) detail: Option<Box<str>>,
    /// The line or element of a batch, from 1.
    pub(super) line: Option<u32>,
    /// Bytes of the event.
    pub(super) size: usize,
    /// The SHA-256 of the bytes; if the type's transform hides something, it was hashed with a secret.
    pub(super) digest: [u8; 32],
    /// The first bytes, unless the type's transform hides something.
    pub(super) head: Option<Box<[u8]>>,
}

/// The outcome of a rejected event.
#[derive(Debug)]
pub(crate) enum Capture {
    /// It isn't stored: its type's configuration doesn't say so, or not for this reason.
    NotWanted,
    /// It would be stored, but too many others were just now.
    LeftOut,
    Event(Box<RefusedEvent>),
}

/// The event that is rejected.
#[derive(Clone, Copy)]
pub(crate) struct Rejected<'a> {
    pub(crate) problem: &'a Problem,
    /// The line or element of a batch, from 1.
    pub(crate) line: Option<u32>,
    /// The bytes that the client sent.
    pub(crate) bytes: &'a [u8],
    /// When it was received, in microseconds since 1970.
    pub(crate) received_at: i64,
}

/// Where a rejected event is stored, if anywhere.
fn refused_to<'t>(types: &'t TypeRegistry, problem: &Problem) -> Option<(&'t Arc<RefusedTo>, TypeName)> {
    let name = problem.type_name.as_deref().filter(|_| problem.code.is_about_the_event())?;
    Some((types.refused_to(name)?, name.clone()))
}

impl RefusedEvent {
    /// Keeps what is stored of a rejected event.
    pub(crate) fn capture(types: &TypeRegistry, rejected: &Rejected<'_>) -> Capture {
        let Rejected { problem, line, bytes, received_at } = *rejected;
        let Some((refused_to, type_name)) = refused_to(types, problem) else { return Capture::NotWanted };
        if !refused_to.allows(bytes.len(), received_at) {
            return Capture::LeftOut;
        }
        let secret = refused_to.secret();
        let digest = Sha256::new().chain_update(secret.map_or(&[][..], |secret| secret)).chain_update(bytes);
        Capture::Event(Box::new(Self {
            refused_to: refused_to.clone(),
            type_name,
            code: problem.code,
            pointer: problem.pointer.as_deref().filter(|_| secret.is_none()).map(shown),
            detail: secret.is_none().then(|| shown(&problem.detail)),
            line,
            size: bytes.len(),
            digest: digest.finalize().into(),
            head: secret.is_none().then(|| bytes[..bytes.len().min(HEAD_BYTES_MAX)].into()),
        }))
    }

    /// Whether a part of the event isn't kept because of its size.
    pub(crate) fn is_cut(&self) -> bool {
        self.head.as_ref().is_some_and(|head| head.len() < self.size)
    }

    /// The type as which it is stored.
    pub(crate) fn to(&self) -> &TypeName {
        self.refused_to.to()
    }

    /// The key of what is stored: the type and the digest of the bytes. It doesn't depend on the sender's key, so the corrected event is no
    /// duplicate.
    pub(crate) fn key(&self) -> Box<[u8]> {
        [self.type_name.as_str().as_bytes(), &[0], &self.digest].concat().into()
    }

    /// About how many bytes it takes in memory.
    pub(crate) fn bytes(&self) -> usize {
        let texts = [&self.pointer, &self.detail].into_iter().flatten().map(|text| text.len()).sum::<usize>();
        size_of::<Self>() + texts + self.head.as_ref().map_or(0, |head| head.len())
    }
}

/// The beginning of a text, with characters that every store can hold.
fn shown(text: &str) -> Box<str> {
    text::escape_control(&text[..text.floor_char_boundary(TEXT_BYTES_MAX)]).into()
}
