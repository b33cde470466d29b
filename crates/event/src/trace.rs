//! The trace that a request is a part of, by W3C Trace Context (<https://www.w3.org/TR/trace-context/>).

use std::fmt;

use text::hex::{self, Hex};

/// A trace, and the span in it that sent the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceParent {
    /// The trace, never 0.
    pub trace_id: [u8; 16],
    /// The span, never 0.
    pub span_id: [u8; 8],
    /// Whether the sender records the trace.
    pub is_sampled: bool,
}

/// Bytes of a context: the two ids, and the flags.
const BYTES: usize = 16 + 8 + 1;
/// The flag of a trace that its sender records. Other flags aren't sent on, as the standard demands of unknown ones.
const SAMPLED: u8 = 1;
/// Characters of a `traceparent` of version 00.
const TEXT_BYTES: usize = 55;

impl TraceParent {
    /// Reads the value of the header `traceparent`. `None` if it is invalid: the standard then ignores it. Of later versions only the parts
    /// of version 00 are read.
    #[must_use]
    pub fn parse(value: &[u8]) -> Option<Self> {
        let (known, rest) = value.split_at_checked(TEXT_BYTES)?;
        let text = str::from_utf8(known).ok().filter(|text| !text.bytes().any(|byte| byte.is_ascii_uppercase()))?;
        let mut parts = text.split('-');
        let mut part = || parts.next();
        let [version] = hex::decode_array(part()?)?;
        let (trace_id, span_id, [flags]) =
            (hex::decode_array(part()?)?, hex::decode_array(part()?)?, hex::decode_array(part()?)?);
        let has_end = match version {
            0 => rest.is_empty(),
            0xff => false,
            _ => rest.first().is_none_or(|first| *first == b'-'),
        };
        has_end.then_some(())?;
        Self::of(trace_id, span_id, flags)
    }

    fn of(trace_id: [u8; 16], span_id: [u8; 8], flags: u8) -> Option<Self> {
        let is_valid = trace_id != [0; 16] && span_id != [0; 8];
        is_valid.then_some(Self { trace_id, span_id, is_sampled: flags & SAMPLED != 0 })
    }

    const fn flags(self) -> u8 {
        if self.is_sampled { SAMPLED } else { 0 }
    }

    /// The context as a record keeps it.
    #[must_use]
    pub fn to_bytes(self) -> [u8; BYTES] {
        let mut bytes = [self.flags(); BYTES];
        bytes[..16].copy_from_slice(&self.trace_id);
        bytes[16..24].copy_from_slice(&self.span_id);
        bytes
    }

    /// The context of a record; `None` if it isn't one.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (trace_id, rest) = bytes.split_first_chunk()?;
        let (span_id, flags) = rest.split_first_chunk()?;
        let [flags] = flags else { return None };
        Self::of(*trace_id, *span_id, *flags)
    }
}

/// The value of the header `traceparent`.
impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-{:02x}", Hex(&self.trace_id), Hex(&self.span_id), self.flags())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn valid_context_survives_text_and_bytes() {
        let context = TraceParent::parse(TEXT.as_bytes()).unwrap();
        assert!(context.is_sampled && context.to_string() == TEXT);
        assert_eq!(TraceParent::from_bytes(&context.to_bytes()), Some(context));
        let other = TraceParent { is_sampled: false, ..context };
        assert_eq!(TraceParent::parse(other.to_string().as_bytes()), Some(other));
        assert_eq!(TraceParent::from_bytes(&other.to_bytes()), Some(other));
        // Unknown flags aren't sent on, and later versions may have further parts.
        assert_eq!(TraceParent::parse(TEXT.replace("-01", "-ff").as_bytes()), Some(context));
        assert_eq!(TraceParent::parse(TEXT.replacen("00", "cc", 1).as_bytes()), Some(context));
        assert_eq!(TraceParent::parse(format!("{}-what", TEXT.replacen("00", "01", 1)).as_bytes()), Some(context));
    }

    #[test]
    fn invalid_context_is_none() {
        let long = format!("{TEXT}-");
        let odd = format!("{}x", TEXT.replacen("00", "01", 1));
        for wrong in [
            "",
            &long,
            &odd,
            &TEXT[..54],
            &TEXT.to_uppercase(),
            &TEXT.replacen("00", "ff", 1),
            &TEXT.replace('-', "_"),
            &TEXT.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            &TEXT.replace("00f067aa0ba902b7", &"0".repeat(16)),
            &TEXT.replace("4bf", "4bé"),
            &TEXT.replace("4bf", "4bg"),
        ] {
            assert_eq!(TraceParent::parse(wrong.as_bytes()), None, "{wrong}");
        }
        let context = TraceParent::parse(TEXT.as_bytes()).unwrap().to_bytes();
        for wrong in [&context[..24], &[&context[..], &[0]].concat(), &[0; 25]] {
            assert_eq!(TraceParent::from_bytes(wrong), None);
        }
    }
}
