//! Reads intents of version 1. Its facts, one on each line, add up to objects.

use std::sync::Arc;

use event::Lane;
use eventlog::{InvalidFact, decode_facts};
use ledger::{Condition, Passage};
use objects::{AttachmentRule, Codec, Line, Manifest, Period, SideFolder};
use serde::Deserialize;

use crate::objects::intent::{FORMAT, Kept, Object};

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Fact {
    /// The heading of each further object.
    ForebayObject,
    Run(u64, u64),
    Received(i64),
    Codec(Codec),
    Name(String),
    Previous(Option<String>),
    /// Lines are payloads.
    Line,
    Apart(Arc<str>),
    ApartType(Arc<str>),
    ApartFolder(SideFolder),
    Description(String),
    Period(Period),
    Keep(String, u64, Option<u64>),
    Gap(String, u64, u64),
    When(String, u64, Option<Condition>),
}

/// How the text of an object begins.
const HEADING: &[u8] = b"forebay-object 1\n";

/// Whether a text is of version 1, which had no line for a list without objects.
pub(super) fn is_version1(text: &[u8]) -> bool {
    text.is_empty() || text.starts_with(HEADING)
}

/// Reads the objects of `lane`.
pub(super) fn decode(text: &[u8], lane: &Lane) -> Result<Vec<Object>, InvalidFact> {
    let mut objects = Vec::new();
    if text.is_empty() {
        return Ok(objects);
    }
    let add = |fact| add(fact, lane, &mut objects).ok_or_else(|| "the line that it extends is missing".to_owned());
    decode_facts(&FORMAT, text, add)?;
    Ok(objects)
}

fn add(fact: Fact, lane: &Lane, objects: &mut Vec<Object>) -> Option<()> {
    if let Fact::Run(first, last) = fact {
        let (name, description) = (String::new(), String::new());
        let (line, codec, lane) = (Line::Envelope, Codec::None, lane.clone());
        let (received_at, apart, previous, period) = (0, None, None, None);
        let manifest =
            Manifest { lane, first, last, received_at, line, codec, apart, previous, name, description, period };
        objects.push(Object { manifest, kept: Kept::new() });
        return Some(());
    }
    let Object { manifest, kept } = objects.last_mut()?;
    match fact {
        Fact::ForebayObject | Fact::Run(..) => {}
        Fact::Received(time) => manifest.received_at = time,
        Fact::Codec(codec) => manifest.codec = codec,
        Fact::Name(name) => {
            manifest.description = SideFolder::NONE.manifest_of(&name);
            manifest.name = name;
        }
        Fact::Previous(name) => manifest.previous = name,
        Fact::Line => manifest.line = Line::Payload,
        Fact::Apart(data) => {
            manifest.apart = Some(AttachmentRule { data, content_type: None, folder: SideFolder::NONE });
        }
        Fact::ApartType(pointer) => manifest.apart.as_mut()?.content_type = Some(pointer),
        Fact::ApartFolder(folder) => manifest.apart.as_mut()?.folder = folder,
        Fact::Description(name) => manifest.description = name,
        Fact::Period(period) => manifest.period = Some(period),
        Fact::Keep(name, after, until) => {
            let until = until.unwrap_or(u64::MAX);
            kept.insert(name, Passage { after, until, conditions: Vec::new(), gaps: Vec::new() });
        }
        Fact::Gap(name, after, until) => kept.get_mut(&name)?.gaps.push((after, until)),
        Fact::When(name, after, condition) => kept.get_mut(&name)?.conditions.push((after, condition)),
    }
    Some(())
}
