//! The protocol between a gateway and a writer for whole objects: size limits, and the digests of an upload.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use objects::ObjectFormat;

/// The prefix of an object's path, relative to its sink's; the object's name follows.
pub const PATH: &str = "objects/";
/// The header field with both digests of an upload, in the format of RFC 9530: `md5=:…:, sha-256=:…:`.
pub const DIGEST: &str = "content-digest";

/// The size limits of a sink's objects. The gateway's limits must not exceed those of the writer's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectLimits {
    /// The size at which an object ends, in bytes.
    max_bytes: u64,
    /// The number of events at which an object ends.
    max_records: u64,
}

impl From<&ObjectFormat> for ObjectLimits {
    fn from(rules: &ObjectFormat) -> Self {
        Self { max_bytes: rules.bytes_max, max_records: rules.records_max }
    }
}

impl ObjectLimits {
    /// Compares the gateway's limits, `self`, with those of the writer's sink.
    ///
    /// # Errors
    /// A message, if the gateway allows larger objects.
    pub fn check(self, writer: Option<Self>, sink: &str) -> Result<(), String> {
        let Some(writer) = writer else {
            return Err(format!(
                "its sink `{sink}` does not store objects: configure a sink of the same kind in the writer"
            ));
        };
        let limits =
            [("max_bytes", self.max_bytes, writer.max_bytes), ("max_records", self.max_records, writer.max_records)];
        limits.into_iter().find(|(_, here, there)| here > there).map_or(Ok(()), |(name, here, there)| {
            Err(format!(
                "`{name}` of its sink `{sink}` is {there}, and {here} in this gateway: lower it in the gateway, or \
                 raise it in the writer"
            ))
        })
    }
}

/// Formats the digests for [`DIGEST`].
#[must_use]
pub fn digest_text(md5: &[u8; 16], sha256: &[u8; 32]) -> String {
    format!("md5=:{}:, sha-256=:{}:", STANDARD.encode(md5), STANDARD.encode(sha256))
}

/// Parses the digests from [`DIGEST`]; `None` unless it has both.
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
    use super::*;

    #[test]
    fn gateway_limits_must_not_exceed_the_writers() {
        let limits = |max_bytes, max_records| ObjectLimits { max_bytes, max_records };
        for (gateway, says) in [
            (limits(1000, 10), None),
            (limits(999, 9), None),
            (limits(1001, 10), Some("`max_bytes` of its sink `archive` is 1000, and 1001 in this gateway")),
            (limits(1000, 11), Some("`max_records` of its sink `archive` is 10, and 11 in this gateway")),
        ] {
            let checked = gateway.check(Some(limits(1000, 10)), "archive");
            assert_eq!(checked.is_ok(), says.is_none(), "{checked:?}");
            assert!(says.is_none_or(|says| checked.as_ref().unwrap_err().contains(says)), "{checked:?}");
        }
        assert!(limits(1, 1).check(None, "archive").unwrap_err().contains("does not store objects"));
    }

    #[test]
    fn digests_survive_their_text() {
        let text = digest_text(&[1; 16], &[2; 32]);
        assert_eq!(digests_of(&text), Some(([1; 16], [2; 32])));
        for wrong in
            ["", "md5=:AQEBAQEBAQEBAQEBAQEBAQ==:", &text.replace("sha-256", "sha-512"), &text.replace("=:", "=")]
        {
            assert_eq!(digests_of(wrong), None, "{wrong}");
        }
    }
}
