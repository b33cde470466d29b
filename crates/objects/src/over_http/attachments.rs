//! Attachments: parts of payloads that become separate objects. They are found, decoded, and replaced by their objects'
//! names.

use std::ops::Range;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use futures_util::Stream;
use futures_util::stream::unfold;
use http::HeaderValue;
use json::JsonPointer;
use json::text::scalar_text;
use tokio::sync::mpsc::{self, Receiver};
use tokio::task::JoinHandle;

use super::error::ObjectStoreError;
use crate::{AttachmentRule, Manifest, Parts};
use sink::{Reason, Record};

/// With `=` at the end or without.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);
/// The content type of bytes without one.
const OCTETS: HeaderValue = HeaderValue::from_static("application/octet-stream");
/// Longer texts aren't content types.
const CONTENT_TYPE_BYTES_MAX: usize = 127;

/// The pointers to attachments.
#[derive(Debug)]
pub(super) struct Attachments {
    data: JsonPointer,
    content_type: Option<JsonPointer>,
}

/// A part that becomes an object.
#[derive(Debug)]
pub(super) struct Attachment {
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
    pub(super) content_type: HeaderValue,
}

impl Attachments {
    /// `None` if there is no rule for attachments.
    pub(super) fn of(apart: Option<&AttachmentRule>) -> Option<Self> {
        let apart = apart?;
        let pointer = |text: &str| text.parse().ok();
        // The configuration's reader has parsed them.
        let content_type = apart.content_type.as_deref().and_then(pointer);
        Some(Self { data: pointer(&apart.data)?, content_type })
    }

    /// Why a payload's attachment can't be decoded, if it can't.
    pub(super) fn refusal(&self, payload: &[u8]) -> Option<Reason> {
        self.decode(payload).err().map(Into::into)
    }

    /// The part of a record that becomes an object, if it has one.
    pub(super) fn part(&self, manifest: &Manifest, record: &Record<'_>) -> Option<Attachment> {
        // A payload that can't be decoded has been rejected.
        let (bytes, content_type) = self.decode(record.payload).ok()??;
        Some(Attachment { name: name(manifest, record), bytes, content_type })
    }

    /// The payload of a record with the object's name instead of its bytes, if it has an attachment.
    pub(super) fn replaced(&self, manifest: &Manifest, record: &Record<'_>) -> Option<Vec<u8>> {
        let payload = record.payload;
        // As in `part`: a line contains only names of existing objects.
        self.decode(payload).ok()??;
        let Range { start, end } = self.find(std::str::from_utf8(payload).ok()?)?;
        let name = name(manifest, record);
        // Names need no escapes in JSON.
        Some([&payload[..start], b"\"", name.as_bytes(), b"\"", &payload[end..]].concat())
    }

    /// The place of the attachment.
    fn find(&self, payload: &str) -> Option<Range<usize>> {
        let raw = self.data.lookup(payload).filter(|raw| *raw != "null")?;
        let start = raw.as_ptr() as usize - payload.as_ptr() as usize;
        Some(start..start + raw.len())
    }

    fn decode(&self, payload: &[u8]) -> Result<Option<(Vec<u8>, HeaderValue)>, String> {
        let payload = std::str::from_utf8(payload).map_err(|error| format!("the payload isn't UTF-8: {error}"))?;
        let Some(found) = self.find(payload) else { return Ok(None) };
        let text = text(&payload[found])
            .ok_or_else(|| format!("the value at {} can't become an object: it isn't a base64 string", self.data))?;
        let bytes = BASE64.decode(text.as_bytes()).map_err(|error| {
            format!("the value at {} can't become an object, because it isn't base64: {error}", self.data)
        })?;
        Ok(Some((bytes, self.content_type(payload)?)))
    }

    fn content_type(&self, payload: &str) -> Result<HeaderValue, String> {
        let Some(pointer) = &self.content_type else { return Ok(OCTETS) };
        let Some(raw) = pointer.lookup(payload).filter(|raw| *raw != "null") else { return Ok(OCTETS) };
        let good = |text: &str| {
            let is_plain = text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
            is_plain && text.len() <= CONTENT_TYPE_BYTES_MAX && text.trim() == text && text.contains('/')
        };
        let value = text(raw).filter(|text| good(text)).and_then(|text| HeaderValue::try_from(&*text).ok());
        value.ok_or_else(|| format!("the value at {pointer} isn't a content type such as \"image/png\""))
    }
}

/// Reads the attachments of all events, on a thread that may block, when they are needed: memory holds a few of them.
/// The stream is complete only if the thread has ended normally.
pub(super) fn read(
    attachments: Attachments,
    manifest: Manifest,
    mut events: Box<dyn Parts>,
) -> (impl Stream<Item = Result<Attachment, ObjectStoreError>> + Send, JoinHandle<()>) {
    let (sender, parts) = mpsc::channel(1);
    let reading = tokio::task::spawn_blocking(move || {
        loop {
            let batch = match events.next() {
                Ok(Some(batch)) => batch,
                Ok(None) => return,
                Err(error) => return drop(sender.blocking_send(Err(ObjectStoreError::Parts(error.0)))),
            };
            for part in batch.records().filter_map(|record| attachments.part(&manifest, &record)) {
                // The receiver was dropped.
                if sender.blocking_send(Ok(part)).is_err() {
                    return;
                }
            }
        }
    });
    (unfold(parts, async |mut parts: Receiver<_>| Some((parts.recv().await?, parts))), reading)
}

/// The text of a JSON string.
fn text(raw: &str) -> Option<std::borrow::Cow<'_, str>> {
    scalar_text(raw).filter(|_| raw.starts_with('"'))
}

/// Fixed by the manifest: the name of the object with the event's line, then the position and the id, so each name is
/// unique.
fn name(manifest: &Manifest, record: &Record<'_>) -> String {
    let below = format!("{}/{:020}-{}", manifest.stem(), record.sequence, record.id);
    manifest.apart.as_ref().map_or(below.clone(), |apart| apart.folder.path(&below))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use event::{EventId, Lane, Origin};

    use super::*;
    use crate::{Codec, Line, ObjectFormat, Portion, Prefix, SideFolder};
    use sink::Write;

    fn apart(folder: SideFolder) -> AttachmentRule {
        AttachmentRule { data: "/a/image".into(), content_type: Some("/kind".into()), folder }
    }

    fn attachments() -> Attachments {
        Attachments::of(Some(&apart(SideFolder::NONE))).unwrap()
    }

    fn manifest() -> Manifest {
        let lane = Lane { origin: Origin([0xab; 16]), shard: 3, sink: "archive".into() };
        let rules = ObjectFormat {
            line: Line::Payload,
            codec: Codec::Gzip,
            bytes_max: 1,
            records_max: 1,
            age_max: Duration::from_secs(1),
            prefix: Prefix::NONE,
            apart: None,
            manifests: SideFolder::NONE,
        };
        Manifest::new(lane, 12..=90, Portion::received("access", 1_760_000_000_123_456), &rules, None, None)
    }

    fn record(payload: &str) -> Record<'_> {
        Record {
            sequence: 12,
            id: EventId([0x11; 16]),
            type_name: "shot",
            source: "",
            received_at: 0,
            event_time: None,
            write: Write::Insert,
            payload: payload.as_bytes(),
        }
    }

    #[test]
    fn attachment_is_decoded_and_replaced_by_its_name() {
        let name = format!(
            "archive-20251009T085320Z-{}-0003-00000000000000000012/00000000000000000012-{}",
            "ab".repeat(16),
            "11111111-1111-1111-1111-111111111111"
        );
        for (payload, bytes, content_type, replaced) in [
            (
                r#"{"a" : {"image":	"AAH/"}, "n":1e0}"#,
                &b"\0\x01\xff"[..],
                "application/octet-stream",
                r#"{"a" : {"image":	"N"}, "n":1e0}"#,
            ),
            (
                r#"{"a":{"image":"AAH\/"},"kind":"image/png"}"#,
                b"\0\x01\xff",
                "image/png",
                r#"{"a":{"image":"N"},"kind":"image/png"}"#,
            ),
            (
                r#"{"a":{"image":"aGk"},"kind":null}"#,
                b"hi",
                "application/octet-stream",
                r#"{"a":{"image":"N"},"kind":null}"#,
            ),
            (r#"{"a":{"image":"aGk="}}"#, b"hi", "application/octet-stream", r#"{"a":{"image":"N"}}"#),
            (r#"{"a":{"image":""}}"#, b"", "application/octet-stream", r#"{"a":{"image":"N"}}"#),
        ] {
            let (record, attachments) = (record(payload), attachments());
            assert_eq!(attachments.refusal(payload.as_bytes()), None, "{payload}");
            let part = attachments.part(&manifest(), &record).unwrap();
            assert_eq!((&*part.bytes, part.content_type.to_str().unwrap(), &part.name), (bytes, content_type, &name));
            let found = String::from_utf8(attachments.replaced(&manifest(), &record).unwrap()).unwrap();
            assert_eq!(found, replaced.replace("\"N\"", &format!("\"{name}\"")));
        }
    }

    #[test]
    fn attachment_may_have_a_separate_folder() {
        let manifest = Manifest { apart: Some(apart(SideFolder::parts())), ..manifest() };
        let (record, stem) = (record(r#"{"a":{"image":"aGk"}}"#), manifest.stem().to_owned());
        let part = attachments().part(&manifest, &record).unwrap();
        assert!(part.name.starts_with(&format!("_parts/{stem}/")), "{}", part.name);
        let line = String::from_utf8(attachments().replaced(&manifest, &record).unwrap()).unwrap();
        assert!(line.contains(&format!("\"{}\"", part.name)), "{line}");
    }

    #[test]
    fn event_without_attachment_is_unchanged() {
        for payload in ["1", "{}", r#"{"a":{"image":null}}"#, r#"{"a":[],"image":"AAH/"}"#] {
            let (record, attachments) = (record(payload), attachments());
            assert_eq!(attachments.refusal(payload.as_bytes()), None);
            assert!(
                attachments.part(&manifest(), &record).is_none()
                    && attachments.replaced(&manifest(), &record).is_none()
            );
        }
    }

    #[test]
    fn invalid_attachment_is_rejected_with_its_pointer() {
        for (payload, why) in [
            (r#"{"a":{"image":1}}"#, "at /a/image can't become an object: it isn't a base64 string"),
            (r#"{"a":{"image":["AAH/"]}}"#, "isn't a base64 string"),
            (r#"{"a":{"image":"AA H/"}}"#, "isn't base64: Invalid symbol 32, offset 2"),
            (r#"{"a":{"image":"AAH_"}}"#, "isn't base64"),
            (r#"{"a":{"image":"A"}}"#, "isn't base64"),
            (r#"{"a":{"image":"AAH/"},"kind":"png"}"#, "at /kind isn't a content type"),
            (r#"{"a":{"image":"AAH/"},"kind":"a/b\nc: d"}"#, "at /kind isn't a content type"),
            (r#"{"a":{"image":"AAH/"},"kind":7}"#, "at /kind isn't a content type"),
        ] {
            let reason = attachments().refusal(payload.as_bytes()).unwrap();
            assert!(reason.contains(why), "{payload}: {reason}");
        }
    }
}
