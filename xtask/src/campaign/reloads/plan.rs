//! The configurations of the campaign: right ones of many kinds, and ways to spoil them.

use std::fmt::Write as _;

use random::Random;

/// A type that always exists, and always goes to the first table.
pub(super) const KEPT: &str = "kept";
/// A type that is added and removed, and goes to either table.
pub(super) const FLEETING: &str = "fleeting";
pub(super) const MAIN_TABLE: &str = "events";
pub(super) const SIDE_TABLE: &str = "side";

/// A configuration that is right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    kept: &'static [&'static str],
    fleeting: &'static [&'static str],
    other_settings: u64,
}

const KEPT_ROUTES: &[&[&str]] = &[&["main"], &["main", "side"]];
const FLEETING_ROUTES: &[&[&str]] = &[&[], &[], &["main"], &["side"], &["main", "side"]];
const OTHER_SETTINGS: &[&str] = &[
    "",
    "cors_origins = [\"https://a.example\"]\n",
    "trusted_proxies = [\"10.0.0.0/8\"]\n",
    "max_connections = 1000\nmax_connections_per_client = 500\n",
    "allow_anonymous = true\n",
];

impl Plan {
    /// All types to all sinks.
    pub(super) fn everything() -> Self {
        Self { kept: &["main", "side"], fleeting: &["main", "side"], other_settings: 0 }
    }

    pub(super) fn any(random: &mut Random) -> Self {
        let kept = pick(random, KEPT_ROUTES);
        let fleeting = pick(random, FLEETING_ROUTES);
        Self { kept, fleeting, other_settings: random.below(OTHER_SETTINGS.len() as u64) }
    }

    /// Its routes, in order.
    pub(super) fn routes(&self) -> Vec<String> {
        let of =
            |name: &'static str, sinks: &'static [&'static str]| sinks.iter().map(move |sink| format!("{name} {sink}"));
        of(FLEETING, self.fleeting).chain(of(KEPT, self.kept)).collect()
    }

    /// The file.
    pub(super) fn text(&self) -> String {
        let settings = usize::try_from(self.other_settings).ok().and_then(|at| OTHER_SETTINGS.get(at));
        let mut text = format!("[gateway]\n{}", settings.unwrap_or(&""));
        for (name, sinks) in [(KEPT, self.kept), (FLEETING, self.fleeting)] {
            if !sinks.is_empty() {
                let _ = writeln!(text, "[types.{name}]\nroutes = {sinks:?}");
            }
        }
        let _ = writeln!(text, "[sinks.main]\nkind = \"sqlite\"");
        if self.kept.contains(&"side") || self.fleeting.contains(&"side") {
            let _ = writeln!(text, "[sinks.side]\nkind = \"sqlite\"\ntable = \"{SIDE_TABLE}\"");
        }
        text
    }
}

fn pick<T: Copy>(random: &mut Random, from: &[T]) -> T {
    from[usize::try_from(random.below(from.len() as u64)).unwrap_or_default()]
}

/// The error in a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConfigFault {
    NotToml,
    UnknownSink,
    UnknownSetting,
    OtherShards,
    NoDatabase,
    Empty,
}

impl ConfigFault {
    /// One configuration in three is wrong.
    pub(super) fn any(random: &mut Random) -> Option<Self> {
        let all =
            [Self::NotToml, Self::UnknownSink, Self::UnknownSetting, Self::OtherShards, Self::NoDatabase, Self::Empty];
        (random.below(3) == 0).then(|| pick(random, &all))
    }

    /// The file of the plan, spoilt.
    pub(super) fn poison(self, plan: &Plan) -> String {
        let text = plan.text();
        match self {
            Self::NotToml => text + "[types\n",
            Self::UnknownSink => text + "[types.more]\nroutes = [\"nowhere\"]\n",
            Self::UnknownSetting => text.replace("[gateway]\n", "[gateway]\nlistens = 1\n"),
            Self::OtherShards => text.replace("[gateway]\n", "[gateway]\nshards = 37\n"),
            Self::NoDatabase => {
                text + "[types.more]\nroutes = [\"more\"]\n[sinks.more]\nkind = \"sqlite\"\npath = \"folder\"\n"
            }
            Self::Empty => "[sinks.main]\nkind = \"sqlite\"\n".to_owned(),
        }
    }
}
