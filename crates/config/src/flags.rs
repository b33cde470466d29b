//! Settings on the command line.

use crate::role::Role;

/// Settings from the command line, unparsed.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    /// `--listen`.
    pub listen: Option<String>,
    /// `--admin`.
    pub admin: Option<String>,
    /// `--log-level`.
    pub log_level: Option<String>,
    /// `--writer`, each time that it was given.
    pub writers: Vec<String>,
    /// The role of the process; none for a command that serves any role.
    pub role: Option<Role>,
}
