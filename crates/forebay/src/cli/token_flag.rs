//! A token as it is given to a command that talks to a server.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use clap::Args;

/// The flag of every command that talks to a server.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct TokenFlag {
    /// A token that the server takes; better in the variable, for flags can be seen by others on this machine
    #[arg(long, value_name = "TOKEN", env = "FOREBAY_TOKEN", hide_env_values = true)]
    token: Option<ShownToken>,
}

/// What is wrong with a token, without showing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the token of --token or FOREBAY_TOKEN must have visible ASCII characters only")]
pub(crate) struct WrongToken;

impl TokenFlag {
    /// The token, if there is one: an empty variable counts as not set.
    ///
    /// # Errors
    /// It can't stand in a header.
    pub(crate) fn token(&self) -> Result<Option<&str>, WrongToken> {
        let token = self.token.as_ref().map(|token| token.0.as_str()).filter(|token| !token.is_empty());
        match token {
            Some(token) if !token.bytes().all(|byte| byte.is_ascii_graphic()) => Err(WrongToken),
            token => Ok(token),
        }
    }
}

/// Any text is taken here: clap would show a wrong one in its message.
#[derive(Clone)]
struct ShownToken(String);

impl FromStr for ShownToken {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        // A variable may have a line break at its end that nobody meant.
        Ok(Self(text.trim_end_matches(['\n', '\r']).to_owned()))
    }
}

impl fmt::Debug for ShownToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ShownToken(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_fits_a_header_or_is_refused_unseen() {
        let flag = |text: &str| TokenFlag { token: Some(text.parse().unwrap_or_else(|error| match error {})) };
        assert_eq!(TokenFlag::default().token(), Ok(None));
        assert_eq!(flag("").token(), Ok(None));
        assert_eq!(flag("fb_x").token(), Ok(Some("fb_x")));
        assert_eq!(flag("fb_x\r\n\n").token(), Ok(Some("fb_x")));
        for wrong in ["fb x", "fb_x ", "fb\r\nX: y", "fé"] {
            assert_eq!(flag(wrong).token(), Err(WrongToken));
            assert!(!format!("{:?}", flag(wrong)).contains("fb") && !WrongToken.to_string().contains(wrong));
        }
    }
}
