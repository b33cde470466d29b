//! Flags under the names that they had in earlier versions. They are accepted until version 0.2, with a warning.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use clap::error::ErrorKind;

/// Each old name with the new one.
const OLD_FLAGS: &[(&str, &str)] = &[("--again", "--resend"), ("--origin", "--gateway")];

/// Replaces old names by the new ones.
///
/// # Errors
/// A flag is set under both names.
pub(super) fn renew(mut arguments: Vec<OsString>) -> Result<Vec<OsString>, clap::Error> {
    let end = arguments.iter().position(|argument| argument == "--").unwrap_or(arguments.len());
    for (old, new) in OLD_FLAGS {
        let is_given = |flag: &str| arguments[..end].iter().any(|argument| value(argument, flag).is_some());
        if !is_given(old) {
            continue;
        }
        if is_given(new) {
            let text = format!("{old} is the old name of {new}, and both are given: remove {old}.\n");
            return Err(clap::Error::raw(ErrorKind::ArgumentConflict, text));
        }
        tracing::warn!("{old} is now {new}; the old name is accepted until version 0.2");
        for argument in &mut arguments[..end] {
            if let Some(rest) = value(argument, old) {
                let mut renewed = OsString::from(new);
                renewed.push(rest);
                *argument = renewed;
            }
        }
    }
    Ok(arguments)
}

/// The rest of an argument after the flag: nothing, or `=` and its value.
fn value<'a>(argument: &'a OsStr, flag: &str) -> Option<&'a OsStr> {
    let rest = argument.as_bytes().strip_prefix(flag.as_bytes())?;
    (rest.is_empty() || rest.starts_with(b"=")).then(|| OsStr::from_bytes(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn renewed(line: &str) -> Result<String, String> {
        let arguments = renew(line.split(' ').map(OsString::from).collect()).map_err(|error| error.to_string())?;
        Ok(arguments.join(OsStr::new(" ")).into_string().unwrap())
    }

    #[test]
    fn old_flags_are_replaced() {
        for (line, expected) in [
            ("token new a --origin 0f", "token new a --gateway 0f"),
            ("token new a --origin=0f", "token new a --gateway=0f"),
            ("token new a --gateway 0f", "token new a --gateway 0f"),
            ("route accept a --again", "route accept a --resend"),
            ("token new a --origins 0f", "token new a --origins 0f"),
            ("token new -- --origin", "token new -- --origin"),
        ] {
            assert_eq!(renewed(line).as_deref(), Ok(expected));
        }
        let both = renewed("token new a --origin 0f --gateway=0f").unwrap_err();
        assert!(both.contains("--origin") && both.contains("--gateway"), "{both}");
    }
}
