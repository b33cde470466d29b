//! A profile as `go tool pprof` and other viewers read it: the message `perftools.profiles.Profile`, compressed with gzip.

use std::collections::HashMap;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::machine::HERTZ;
use crate::protobuf::Message;
use crate::stacks::{Profile, SampleKind};

const NANOSECONDS: u64 = 1_000_000_000;

// Fields of the message.
const SAMPLE_TYPE: u64 = 1;
const SAMPLE: u64 = 2;
const LOCATION: u64 = 4;
const FUNCTION: u64 = 5;
const STRING_TABLE: u64 = 6;
const DURATION_NANOS: u64 = 10;
const PERIOD_TYPE: u64 = 11;
const PERIOD: u64 = 12;
const COMMENT: u64 = 13;

/// The table of texts, which other fields name by number.
#[derive(Default)]
struct Texts<'a> {
    numbers: HashMap<&'a str, u64>,
    list: Vec<&'a str>,
}

impl<'a> Texts<'a> {
    fn number(&mut self, text: &'a str) -> u64 {
        *self.numbers.entry(text).or_insert_with(|| {
            self.list.push(text);
            self.list.len() as u64 - 1
        })
    }
}

/// The message. `title` is one of its comments.
pub(crate) fn write(profile: &Profile, title: &str) -> Vec<u8> {
    let message = message(profile, title);
    let mut compressed = GzEncoder::new(Vec::new(), Compression::fast());
    // Memory takes all of it.
    let _ = compressed.write_all(&message);
    compressed.finish().unwrap_or_default()
}

fn message(profile: &Profile, title: &str) -> Vec<u8> {
    let mut message = Message::default();
    let mut texts = Texts::default();
    texts.number("");
    let (kind, unit, period) = match profile.kind {
        SampleKind::Cpu => ("cpu", "nanoseconds", NANOSECONDS / HERTZ),
        SampleKind::Heap => ("alloc_space", "bytes", 512 * 1024),
    };
    for (kind, unit) in [("samples", "count"), (kind, unit)] {
        message.bytes(SAMPLE_TYPE, &pair(texts.number(kind), texts.number(unit)));
    }
    for stack in &profile.stacks {
        let mut sample = Message::default();
        // The innermost is first, and numbers begin with 1.
        sample.numbers(1, stack.frames.iter().rev().map(|frame| u64::from(*frame) + 1));
        let value = if profile.kind == SampleKind::Cpu { stack.weight * period } else { stack.weight };
        sample.numbers(2, [stack.samples, value]);
        message.bytes(SAMPLE, &sample.0);
    }
    for (number, name) in (1..).zip(&profile.names) {
        message.bytes(LOCATION, &location(number));
        let name = texts.number(name);
        let mut function = Message::default();
        function.number(1, number);
        function.number(2, name);
        function.number(3, name);
        message.bytes(FUNCTION, &function.0);
    }
    message.number(DURATION_NANOS, u64::try_from(profile.duration.as_nanos()).unwrap_or(u64::MAX));
    message.bytes(PERIOD_TYPE, &pair(texts.number(kind), texts.number(unit)));
    message.number(PERIOD, period);
    let remarks = profile.remarks();
    let comments = [title].into_iter().chain(remarks.iter().map(String::as_str));
    let comments: Vec<u64> = comments.map(|comment| texts.number(comment)).collect();
    message.numbers(COMMENT, comments);
    texts.list.iter().for_each(|text| message.bytes(STRING_TABLE, text.as_bytes()));
    message.0
}

/// What is counted, and its unit.
fn pair(kind: u64, unit: u64) -> Vec<u8> {
    let mut pair = Message::default();
    pair.number(1, kind);
    pair.number(2, unit);
    pair.0
}

/// The place in the function of the same number.
fn location(number: u64) -> Vec<u8> {
    let (mut location, mut line) = (Message::default(), Message::default());
    line.number(1, number);
    location.number(1, number);
    location.bytes(4, &line.0);
    location.0
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;
    use crate::stacks::tests::example;

    #[test]
    fn message_has_texts_and_samples_by_number() {
        let mut message = Vec::new();
        GzDecoder::new(&write(&example(SampleKind::Cpu), "forebay 1")[..]).read_to_end(&mut message).unwrap();
        let has = |part: &[u8]| message.windows(part.len()).any(|bytes| bytes == part);
        // Two kinds of values, of which the second is the texts 3 and 4: cpu, nanoseconds.
        assert!(message.starts_with(&[0x0a, 4, 8, 1, 16, 2, 0x0a, 4, 8, 3, 16, 4]));
        // The stack of frames 3, 2 and 1, with 6 samples of 10,101,010 ns each.
        assert!(has(&[0x0a, 3, 3, 2, 1, 0x12, 5, 6, 0xec, 0x8c, 0xf3, 0x1c]));
        assert!(has(b"sqlite3Step") && has(b"forebay 1") && has(b"no symbols"));
    }
}
