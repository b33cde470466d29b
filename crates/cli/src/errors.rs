//! Messages of errors. A command ends with its message, and no code inspects an error, so the error is its message.

use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Error, anyhow};
use journal::DirectoryError;
use settings::files;

/// The message names the file or the directory.
pub fn at(path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Error {
    move |error| anyhow!("{}: {error}", path.as_ref().display())
}

/// The message names what failed.
pub fn cannot(what: impl Display) -> impl FnOnce(io::Error) -> Error {
    move |error| anyhow!("can't {what}: {error}")
}

/// The message names the file or the directory that can't be read.
pub fn unreadable(path: &Path) -> impl FnOnce(io::Error) -> Error + '_ {
    move |error| anyhow!("can't read {}: {error}", path.display())
}

/// The message says what to do if another user owns the data directory.
pub fn unusable(error: DirectoryError) -> Error {
    let denied = match &error {
        DirectoryError::Io { path, source } => files::denied(source, path),
        _ => None,
    };
    match denied {
        Some(advice) => anyhow!("{error}; {advice}"),
        None => error.into(),
    }
}

/// The message names the address, and the flag for another one.
pub fn cannot_listen(address: SocketAddr, flag: &str) -> impl FnOnce(io::Error) -> Error {
    move |error| {
        anyhow!(
            "can't listen on {address}: {error}; choose another address with {flag}, or end the program that uses it"
        )
    }
}
