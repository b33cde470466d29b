//! The sources of a configuration.

use std::path::Path;

use access::Scopes;
use settings::Environment;
use sink::Folders;

use crate::flags::Flags;

/// The variable of an image: the IP address of a `listen` that no flag, variable or file sets.
pub(crate) const DEFAULT_IP: &str = "FOREBAY_DEFAULT_IP";

/// Variables of flags that are no settings.
pub const OF_FLAGS: &[&str] = &[
    "FOREBAY_CA",
    "FOREBAY_CONFIG",
    "FOREBAY_DATA",
    "FOREBAY_ROLE",
    "FOREBAY_TOKEN",
    "FOREBAY_TOKEN_FILE",
    DEFAULT_IP,
];

/// The sources of a configuration.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// The file's name, for messages, and its bytes.
    pub file: Option<(&'a str, &'a [u8])>,
    /// The folder of the file: its relative paths start there.
    pub folder: &'a Path,
    /// The process's variables.
    pub environment: &'a Environment,
    /// The command line.
    pub flags: &'a Flags,
    /// The data directory, from which the relative paths of sinks lead.
    pub data: &'a Path,
    /// The scopes of the existing tokens.
    pub scopes: Scopes,
}

impl<'a> Inputs<'a> {
    /// The folders of relative paths.
    pub(crate) const fn folders(&self) -> Folders<'a> {
        Folders { configuration: self.folder, data: self.data }
    }
}
