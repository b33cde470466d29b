//! What a gateway and a writer say to each other about whole objects: what the objects of a sink are like, and the digests of an upload.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::RemoteStore;
use crate::object::Line;
use crate::{ObjectRules, SinkError};

/// The path of an object begins with it, behind that of its sink; the object's name follows.
pub const PATH: &str = "objects/";
/// Both digests of an upload's bytes, as RFC 9530 writes them: `md5=:…:, sha-256=:…:`.
pub const DIGEST: &str = "content-digest";

/// What objects of a sink are like, as far as gateway and writer must agree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectsInfo {
    /// How they are coded.
    codec: String,
    /// What their names begin with.
    object: String,
    /// Whether lines are envelopes.
    envelope: bool,
    /// Where a part of a payload stands that is an object of its own.
    object_from: Option<String>,
    /// Where its content type stands.
    object_type_from: Option<String>,
    /// Bytes at which an object ends.
    max_bytes: u64,
    /// Events at which an object ends.
    max_records: u64,
}

impl From<&ObjectRules> for ObjectsInfo {
    fn from(rules: &ObjectRules) -> Self {
        let apart = rules.apart.as_ref();
        Self {
            codec: rules.codec.to_string(),
            object: rules.prefix.to_string(),
            envelope: rules.line == Line::Envelope,
            object_from: apart.map(|apart| apart.data.to_string()),
            object_type_from: apart.and_then(|apart| apart.content_type.as_deref()).map(str::to_owned),
            max_bytes: rules.bytes_max,
            max_records: rules.records_max,
        }
    }
}

impl ObjectsInfo {
    /// Compares the rules of a gateway with those of the writer's sink, which are these.
    ///
    /// # Errors
    /// They differ, or the gateway allows larger objects than the writer's sink.
    pub(crate) fn check(&self, gateway: &ObjectRules, sink: &str, store: RemoteStore) -> Result<(), SinkError> {
        let Self { codec, object, envelope, object_from, object_type_from, max_bytes, max_records } =
            Self::from(gateway);
        let codec_setting = if store == RemoteStore::Directory { "codec" } else { "format" };
        let text = |value: &Option<String>| value.as_deref().map_or("nothing".to_owned(), |text| format!("\"{text}\""));
        let equal = [
            (codec_setting, self.codec.clone(), codec),
            ("object", format!("\"{}\"", self.object), format!("\"{object}\"")),
            ("envelope", self.envelope.to_string(), envelope.to_string()),
            ("object_from", text(&self.object_from), text(&object_from)),
            ("object_type_from", text(&self.object_type_from), text(&object_type_from)),
        ];
        let bounded = [("max_bytes", self.max_bytes, max_bytes), ("max_records", self.max_records, max_records)];
        let differing = equal.into_iter().filter(|(_, writer, gateway)| writer != gateway);
        let beyond = bounded.into_iter().filter(|(_, writer, gateway)| gateway > writer);
        let beyond = beyond.map(|(name, writer, gateway)| (name, writer.to_string(), gateway.to_string()));
        let said: Vec<String> = differing
            .chain(beyond)
            .map(|(name, writer, gateway)| format!("{name} is {writer} there and {gateway} here"))
            .collect();
        if said.is_empty() {
            return Ok(());
        }
        let reason = format!(
            "the objects of the writer's sink `{sink}` differ from those of this gateway: {}. Set the same in both configurations; \
             max_bytes and max_records may be smaller here",
            said.join(", ")
        );
        Err(SinkError::Misconfigured(reason.into()))
    }
}

/// The digests as [`DIGEST`] has them.
#[must_use]
pub fn digest_text(md5: &[u8; 16], sha256: &[u8; 32]) -> String {
    format!("md5=:{}:, sha-256=:{}:", STANDARD.encode(md5), STANDARD.encode(sha256))
}

/// The digests that a text of [`DIGEST`] has, if it has both.
#[must_use]
pub fn digests_of(text: &str) -> Option<([u8; 16], [u8; 32])> {
    let value = |name: &str| {
        let member = text.split(',').find_map(|member| member.trim().strip_prefix(name)?.strip_prefix('='))?;
        STANDARD.decode(member.strip_prefix(':')?.strip_suffix(':')?).ok()
    };
    Some((value("md5")?.try_into().ok()?, value("sha-256")?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::object::Apart;
    use crate::{Codec, Prefix};

    fn rules() -> ObjectRules {
        ObjectRules {
            line: Line::Payload,
            codec: Codec::Zstd,
            bytes_max: 1000,
            records_max: 10,
            age_max: Duration::from_secs(1),
            prefix: "a/{day}/".parse().unwrap(),
            apart: None,
        }
    }

    #[test]
    fn a_gateway_may_be_stricter_and_not_laxer_or_different() {
        let apart = Some(Apart { data: "/image".into(), content_type: None });
        for (gateway, says) in [
            (rules(), None),
            (ObjectRules { bytes_max: 999, records_max: 9, age_max: Duration::from_secs(9), ..rules() }, None),
            (ObjectRules { bytes_max: 1001, ..rules() }, Some("max_bytes is 1000 there and 1001 here")),
            (ObjectRules { records_max: 11, ..rules() }, Some("max_records is 10 there and 11 here")),
            (ObjectRules { codec: Codec::Gzip, ..rules() }, Some("format is zstd there and gzip here")),
            (ObjectRules { line: Line::Envelope, ..rules() }, Some("envelope is false there and true here")),
            (ObjectRules { prefix: Prefix::NONE, ..rules() }, Some("object is \"a/{day}/\" there and \"\" here")),
            (ObjectRules { apart, ..rules() }, Some("object_from is nothing there and \"/image\" here")),
        ] {
            let text = serde_json::to_string(&ObjectsInfo::from(&rules())).unwrap();
            let writer: ObjectsInfo = serde_json::from_str(&text).unwrap();
            let checked = writer.check(&gateway, "archive", RemoteStore::Swift);
            match says {
                None => assert_eq!(checked, Ok(())),
                Some(says) => {
                    let SinkError::Misconfigured(reason) = checked.unwrap_err() else { panic!("{says}") };
                    assert!(reason.contains(says), "{reason}");
                }
            }
        }
    }

    #[test]
    fn digests_are_read_as_they_are_written() {
        let text = digest_text(&[1; 16], &[2; 32]);
        assert_eq!(digests_of(&text), Some(([1; 16], [2; 32])));
        for wrong in
            ["", "md5=:AQEBAQEBAQEBAQEBAQEBAQ==:", &text.replace("sha-256", "sha-512"), &text.replace("=:", "=")]
        {
            assert_eq!(digests_of(wrong), None, "{wrong}");
        }
    }
}
