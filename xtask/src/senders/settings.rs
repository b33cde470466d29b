//! The configuration of Forebay in this campaign: an intake of each protocol, and SQLite.

use std::fmt::Write as _;
use std::net::SocketAddr;

use testkit::ports::free_address;

/// An intake of each provider, with the secrets of `senders/signed.py` and `senders/signed.mjs`.
const WEBHOOKS: &str = include_str!("../../senders/webhooks.toml");
/// The types of lines from Loki's senders and from rsyslog.
const CONTENT_IDS: &str = r#"
[types."loki.log"]
id = "content"
routes = ["local"]

[types.app-logs]
id = "content"
routes = ["local"]
"#;
/// Pages of every origin may post events.
const PAGE: &str = "[gateway]\ncors_origins = [\"*\"]\n";

/// The kinds of intakes that have one intake each, by the path on the ingest port, which is the intake's name too.
const KINDS: [(&str, &str); 6] = [
    ("es", "elasticsearch"),
    ("otlp", "otlp"),
    ("hec", "splunk_hec"),
    ("segment", "segment"),
    ("loki", "loki"),
    ("cloudevents", "cloudevents"),
];

/// Where a sender sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// At the root of the intake's own port.
    Root(&'static str),
    /// On the ingest port, at this path.
    Path(&'static str),
}

/// What a campaign adds to the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extra {
    Nothing,
    /// The webhook intakes of `signed`.
    Webhooks,
    /// What web pages need.
    Page,
    /// Ids by content, for senders that resend events in other batches.
    ContentIds,
}

/// The configuration, and where its intakes listen.
pub(super) struct Settings {
    pub(super) text: String,
    own_ports: Vec<(&'static str, SocketAddr)>,
}

impl Settings {
    /// Settings with free ports.
    pub(super) fn new(extra: Extra) -> Self {
        let own_ports = KINDS.map(|(name, _)| (name, free_address())).to_vec();
        let mut text = "[types.\"*\"]\nroutes = [\"local\"]\n\n[sinks.local]\nkind = \"sqlite\"\n".to_owned();
        for ((name, kind), (_, address)) in KINDS.iter().zip(&own_ports) {
            let _ = write!(text, "\n[intakes.{name}]\nkind = \"{kind}\"\nlisten = \"{address}\"\n");
        }
        text.push('\n');
        text.push_str(match extra {
            Extra::Nothing => "",
            Extra::Webhooks => WEBHOOKS,
            Extra::Page => PAGE,
            Extra::ContentIds => CONTENT_IDS,
        });
        Self { text, own_ports }
    }

    /// The address of a place, if the ingest port is at `ingest`, and the path there.
    pub(super) fn address(&self, place: Place, ingest: SocketAddr) -> (SocketAddr, &'static str) {
        match place {
            Place::Path(path) => (ingest, path),
            Place::Root(name) => {
                let own = self.own_ports.iter().find(|(own, _)| *own == name);
                (own.map_or(ingest, |(_, address)| *address), "")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_intake_has_its_own_port() {
        let settings = Settings::new(Extra::Nothing);
        let ingest = free_address();
        let (hec, path) = settings.address(Place::Root("hec"), ingest);
        assert!(settings.text.contains(&format!("[intakes.hec]\nkind = \"splunk_hec\"\nlisten = \"{hec}\"")));
        assert_eq!(path, "");
        assert_eq!(settings.address(Place::Path("/otlp"), ingest), (ingest, "/otlp"));
    }
}
