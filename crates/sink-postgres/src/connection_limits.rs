//! How many connections there may be, and for how long.

use std::num::NonZeroUsize;
use std::time::Duration;

/// How many connections write to a database, and how long each is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolLimits {
    /// So many at most; without it each lane may have one. Reads have one more.
    pub max: Option<NonZeroUsize>,
    /// One that nobody used for so long is closed.
    pub idle: Duration,
    /// None is used for longer, so that servers behind one name share the work by and by.
    pub lifetime: Duration,
    /// What is between Forebay and the server.
    pub pooler: Pooler,
}

impl PoolLimits {
    /// What something on the way may have forgotten, as firewalls do, isn't used any more.
    pub const IDLE: Duration = Duration::from_mins(5);
    /// See [`PoolLimits::lifetime`].
    pub const LIFETIME: Duration = Duration::from_hours(1);
}

impl Default for PoolLimits {
    fn default() -> Self {
        Self { max: None, idle: Self::IDLE, lifetime: Self::LIFETIME, pooler: Pooler::default() }
    }
}

/// What is known of a pooler between Forebay and a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pooler {
    /// Nothing: one that doesn't keep a session's server is looked for.
    #[default]
    Detect,
    /// There is one, and it keeps a session's server.
    Session,
}
