//! Folders for objects that aren't rows. Query engines read every object with a prefix as rows, so manifests and
//! attachments are in separate folders.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// With the longest prefix and the longest name, a whole name stays below 1,024 bytes.
const BYTES_MAX: usize = 64;
/// Hive, Spark, Athena and Trino ignore each folder whose name begins with `_`.
const MANIFESTS: &str = "_manifests";
const PARTS: &str = "_parts";
/// The end of manifests' names.
pub(super) const MANIFEST: &str = ".manifest.json";

/// A folder in a container or directory, in which names are the same as next to objects. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SideFolder(Option<Arc<str>>);

/// Why a text isn't such a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidFolder {
    /// A character that some stores or tools interpret.
    #[error("expected ASCII letters, digits and . _ - = /")]
    Character,
    /// Names would be too long.
    #[error("expected at most {BYTES_MAX} bytes")]
    Long,
    /// A path that tools would interpret as another one, or a hidden folder.
    #[error("expected no / or . at the beginning, no //, and no part that is . or ..")]
    Path,
}

impl SideFolder {
    /// No folder: manifests and attachments are next to objects.
    pub const NONE: Self = Self(None);

    /// The folder of manifests, unless the configuration names another one.
    #[must_use]
    pub fn manifests() -> Self {
        Self(Some(MANIFESTS.into()))
    }

    /// The folder of attachments, unless the configuration names another one.
    #[must_use]
    pub fn parts() -> Self {
        Self(Some(PARTS.into()))
    }

    /// The whole name of an object that would have this name next to objects.
    #[must_use]
    pub fn path(&self, name: &str) -> String {
        self.0.as_deref().map_or_else(|| name.to_owned(), |folder| format!("{folder}/{name}"))
    }

    /// The name of an object's manifest.
    #[must_use]
    pub fn manifest_of(&self, object: &str) -> String {
        self.path(&format!("{object}{MANIFEST}"))
    }

    /// The rest of a name in this folder; `None` if the name is in another one.
    pub(super) fn strip<'a>(&self, name: &'a str) -> Option<&'a str> {
        name.strip_prefix(self.0.as_deref()?)?.strip_prefix('/')
    }
}

event::serde_as_text!(SideFolder);

impl FromStr for SideFolder {
    type Err = InvalidFolder;

    /// A slash at the end is optional. An empty text is [`SideFolder::NONE`].
    fn from_str(text: &str) -> Result<Self, InvalidFolder> {
        if text.is_empty() {
            return Ok(Self::NONE);
        }
        let folder = text.strip_suffix('/').unwrap_or(text);
        if !folder.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-=/".contains(&byte)) {
            return Err(InvalidFolder::Character);
        }
        if folder.len() > BYTES_MAX {
            return Err(InvalidFolder::Long);
        }
        if folder.starts_with('.') || folder.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(InvalidFolder::Path);
        }
        Ok(Self(Some(folder.into())))
    }
}

impl fmt::Display for SideFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_deref().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_is_put_before_the_name() {
        let name = |text: &str| text.parse::<SideFolder>().map(|folder| folder.path("a/b.json"));
        assert_eq!(name("").unwrap(), "a/b.json");
        assert_eq!(name("_m/x/").unwrap(), "_m/x/a/b.json");
        assert_eq!(
            [SideFolder::manifests(), SideFolder::parts()].map(|folder| folder.path("b")),
            ["_manifests/b", "_parts/b"]
        );
        assert_eq!(SideFolder::manifests().manifest_of("a/b.ndjson"), "_manifests/a/b.ndjson.manifest.json");
        assert_eq!(SideFolder::NONE.manifest_of("b.ndjson"), "b.ndjson.manifest.json");
        for (wrong, why) in [
            ("a b", InvalidFolder::Character),
            ("{day}", InvalidFolder::Character),
            (&"a".repeat(BYTES_MAX + 1), InvalidFolder::Long),
            ("/", InvalidFolder::Path),
            ("/a", InvalidFolder::Path),
            ("a//b", InvalidFolder::Path),
            ("a/..", InvalidFolder::Path),
            (".a", InvalidFolder::Path),
        ] {
            assert_eq!(wrong.parse::<SideFolder>(), Err(why), "{wrong}");
        }
    }
}
