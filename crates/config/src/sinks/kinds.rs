//! The kinds of sinks, each with its settings.

use settings::{InvalidValue, nearest};

use crate::sinks::{directory, elasticsearch, nats, postgres, redis, remote, s3, sqlite, swift, webhook};

/// The settings that a sink of each kind has.
pub(crate) const KINDS: &[(&str, &[&str])] = &[
    ("sqlite", sqlite::KEYS),
    ("directory", directory::KEYS),
    ("elasticsearch", elasticsearch::KEYS),
    ("nats", nats::KEYS),
    ("postgres", postgres::KEYS),
    ("redis", redis::KEYS),
    ("swift", swift::KEYS),
    ("s3", s3::KEYS),
    ("webhook", webhook::KEYS),
    ("writer", remote::KEYS),
    ("null", &["kind", "from", "max_backlog", "max_dead_letters"]),
];

pub(crate) fn names() -> String {
    KINDS.iter().map(|(kind, _)| *kind).collect::<Vec<_>>().join(", ")
}

pub(crate) fn parse(text: &str) -> Result<(&'static str, &'static [&'static str]), InvalidValue> {
    let unknown = || {
        let wrong = InvalidValue::new("is not a kind of sink", "unknown");
        match nearest(text, KINDS.iter().map(|(kind, _)| *kind)) {
            Some(near) => wrong.help(format!("did you mean `{near}`?")),
            None => wrong.help(format!("known kinds: {}", names())),
        }
    };
    KINDS.iter().find(|(kind, _)| *kind == text).copied().ok_or_else(unknown)
}
