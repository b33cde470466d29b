//! The version of the protocol. Each request and each response names it, and sides with different versions do nothing for each other.

use std::fmt;

/// The version that this release uses. A change of a name or of a meaning in the protocol needs another one.
pub const VERSION: u32 = 2;
/// The value of [`PROTOCOL`](crate::wire::PROTOCOL) in this release.
pub const OWN: &str = concat!("2/", env!("CARGO_PKG_VERSION"));
/// Builds that name no version use this one.
const UNNAMED: u32 = 1;
/// The longest release name of another side in a message.
const RELEASE_CHARS_MAX: usize = 32;

/// The version and the release that the other side names, as in `2/0.1.0`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    version: u32,
    /// `None`: it names no version.
    release: Option<String>,
}

impl Peer {
    /// The other side, by the value of its header field.
    #[must_use]
    pub fn new(value: Option<&str>) -> Self {
        let named = value.and_then(|value| {
            let (version, release) = value.split_once('/')?;
            Some((version.parse().ok()?, release.chars().take(RELEASE_CHARS_MAX).collect()))
        });
        let (version, release) = named.map_or((UNNAMED, None), |(version, release)| (version, Some(release)));
        Self { version, release }
    }

    /// Whether it names a version at all.
    #[must_use]
    pub const fn is_named(&self) -> bool {
        self.release.is_some()
    }

    /// Whether it uses this release's version.
    #[must_use]
    pub const fn is_current(&self) -> bool {
        self.is_named() && self.version == VERSION
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.release {
            Some(release) => write!(f, "protocol {} (Forebay {release})", self.version),
            None => write!(f, "protocol {} (a pre-release build of 26 November 2026 or earlier)", self.version),
        }
    }
}

/// The writer's message to a gateway of another version.
#[must_use]
pub fn gateway_differs(gateway: &Peer) -> String {
    differs(gateway, &Peer::new(Some(OWN)))
}

/// The gateway's message about a writer of another version.
#[must_use]
pub fn writer_differs(writer: &Peer) -> String {
    differs(&Peer::new(Some(OWN)), writer)
}

fn differs(gateway: &Peer, writer: &Peer) -> String {
    let (older, newest) = if gateway.version < writer.version { ("gateway", writer) } else { ("writer", gateway) };
    let newest = newest.release.as_deref().unwrap_or_default();
    format!("the gateway uses {gateway}, the writer {writer}: upgrade the {older} to {newest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_value_names_current_version() {
        let own = Peer::new(Some(OWN));
        assert!(own.is_current() && own.is_named());
        assert_eq!(own.to_string(), format!("protocol {VERSION} (Forebay {})", env!("CARGO_PKG_VERSION")));
    }

    #[test]
    fn missing_or_malformed_value_is_protocol_1() {
        for value in [None, Some(""), Some("2"), Some("/0.1.0"), Some("-2/0.1.0"), Some("x/0.1.0")] {
            let peer = Peer::new(value);
            assert!(!peer.is_named() && !peer.is_current(), "{value:?}");
            assert!(peer.to_string().starts_with("protocol 1 "), "{peer}");
        }
        assert!(!Peer::new(Some("1/0.1.0")).is_current());
    }

    #[test]
    fn messages_name_both_sides_and_the_one_to_upgrade() {
        let (old, new) = (Peer::new(None), Peer::new(Some("3/0.2.0")));
        for (message, upgrade) in [
            (gateway_differs(&old), format!("upgrade the gateway to {}", env!("CARGO_PKG_VERSION"))),
            (writer_differs(&old), format!("upgrade the writer to {}", env!("CARGO_PKG_VERSION"))),
            (gateway_differs(&new), "upgrade the writer to 0.2.0".to_owned()),
            (writer_differs(&new), "upgrade the gateway to 0.2.0".to_owned()),
        ] {
            assert!(message.contains(&upgrade) && message.contains("protocol 2"), "{message}");
            assert!(message.contains("protocol 1") || message.contains("protocol 3"), "{message}");
        }
    }
}
