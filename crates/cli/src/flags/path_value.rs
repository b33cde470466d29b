//! Paths that a variable may have: `echo` and editors add a line break at the end, which is no part of a path.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::builder::{PathBufValueParser, TypedValueParser};

/// Parses a path, without the line breaks at its end.
pub(super) fn path() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().map(|path| {
        let bytes = path.as_os_str().as_bytes();
        let end = bytes.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
        PathBuf::from(OsStr::from_bytes(&bytes[..end]))
    })
}

#[cfg(test)]
mod tests {
    use clap::{Arg, Command};

    use super::*;

    #[test]
    fn trailing_line_breaks_of_a_path_are_removed() {
        for (given, expected) in [("data", "data"), ("da\nta\r\n\n", "da\nta"), ("data ", "data ")] {
            let command = Command::new("x").arg(Arg::new("path").value_parser(path()));
            let found = command.get_matches_from(["x", given]).remove_one::<PathBuf>("path").unwrap();
            assert_eq!(found, PathBuf::from(expected));
        }
    }
}
