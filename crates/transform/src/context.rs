//! Facts of an event that aren't in the payload. Time is an argument here, as everything is.

// An address, without any function of the network.
use core::net::IpAddr;
use std::fmt;

/// The facts of an event in addition to its payload.
#[derive(Clone, Copy)]
pub struct Context<'c> {
    /// When it was received, in microseconds since 1970.
    pub received_at: i64,
    /// The address of its client, if it is known.
    pub client: Option<IpAddr>,
    /// Its source: the token's name, `""` without tokens.
    pub source: &'c str,
    /// Its type.
    pub event_type: &'c str,
    /// The id or key that its client gave it, if any: a sample is drawn by it, so a duplicate gets the same result. If
    /// it is empty, the sample is drawn by the payload.
    pub key: &'c [u8],
    /// The value of a header of its request, by its name in lowercase.
    pub header: &'c dyn Fn(&str) -> Option<&'c str>,
}

impl<'c> Context<'c> {
    /// The context of an event without known facts.
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

/// A fact of an event.
#[derive(Clone, Debug)]
pub(super) enum Fact {
    ReceivedTime,
    Client,
    Source,
    Type,
    Header(String),
}

impl Fact {
    /// The fact as JSON; `None` if it is unknown.
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
