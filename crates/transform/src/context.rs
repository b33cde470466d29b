//! What a step may ask that doesn't stand in the payload. Time is an argument here, as everything is.

// What an address is, and nothing that could be done with one.
use core::net::IpAddr;
use std::fmt;

/// What is known of an event beside its payload.
#[derive(Clone, Copy)]
pub struct Context<'c> {
    /// When it was received, in microseconds since 1970.
    pub received_at: i64,
    /// The address of its client, if it is known.
    pub client: Option<IpAddr>,
    /// Who sent it: the token's name, `""` without tokens.
    pub source: &'c str,
    /// Its type.
    pub event_type: &'c str,
    /// What it is known by, if its sender gave it an id or a key: a sample is drawn by it, so that an event that comes
    /// again meets the same fate. Where this is empty, the payload is taken.
    pub key: &'c [u8],
    /// The value of a header of its request. Names are given in small letters.
    pub header: &'c dyn Fn(&str) -> Option<&'c str>,
}

impl<'c> Context<'c> {
    /// That of an event of which nothing is known.
    pub const UNKNOWN: Context<'c> =
        Context { received_at: 0, client: None, source: "", event_type: "", key: &[], header: &|_| None };
}

impl fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("received_at", &self.received_at)
            .field("client", &self.client)
            .finish_non_exhaustive()
    }
}

/// Something that is known of an event.
#[derive(Clone, Debug)]
pub(super) enum Fact {
    ReceivedTime,
    Client,
    Source,
    Type,
    Header(String),
}

impl Fact {
    /// The fact as JSON; nothing where it isn't known.
    pub(super) fn write(&self, context: &Context<'_>, out: &mut String) -> Option<()> {
        let text = match self {
            Self::ReceivedTime => return write_time(context.received_at, out),
            Self::Client => {
                json::text::write_string(&context.client?.to_string(), out);
                return Some(());
            }
            Self::Source => context.source,
            Self::Type => context.event_type,
            Self::Header(name) => (context.header)(name)?,
        };
        (!text.is_empty()).then(|| json::text::write_string(text, out))
    }
}

fn write_time(microseconds: i64, out: &mut String) -> Option<()> {
    json::text::write_string(&text::rfc3339::format(microseconds), out);
    Some(())
}
