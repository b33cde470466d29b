//! The token of a command that calls a server.

use std::convert::Infallible;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;
use settings::{Environment, InvalidVariable};

use super::path_value::path;

const VARIABLE: &str = "FOREBAY_TOKEN";
const FILE_VARIABLE: &str = "FOREBAY_TOKEN_FILE";

/// The flags of every command that calls a server.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct TokenFlag {
    /// A token that the server accepts; better in a file or the variable, because other users of this machine see flags [env: FOREBAY_TOKEN]
    #[arg(long, value_name = "TOKEN", conflicts_with = "token_file")]
    token: Option<ShownToken>,
    /// A file with the token, such as a secret of Docker or Kubernetes [env: FOREBAY_TOKEN_FILE]
    #[arg(long, value_name = "FILE", value_parser = path())]
    token_file: Option<PathBuf>,
}

/// An invalid token. The message doesn't show it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WrongToken {
    /// It can't be in a header.
    #[error("the token of {0} must have visible ASCII characters only: copy it again")]
    Characters(String),
    /// Its file can't be read.
    #[error("can't read the token file {path}: {reason}. Correct the path, or the permissions of the file")]
    Unreadable {
        /// The file.
        path: String,
        /// The operating system's reason.
        reason: String,
    },
    /// Both variables are set.
    #[error("{VARIABLE} and {FILE_VARIABLE} are both set: unset one of them")]
    SetTwice,
}

impl TokenFlag {
    /// The token of the flags, or else of the environment. An empty variable counts as not set.
    ///
    /// # Errors
    /// It can't be read, or can't be in a header.
    pub(crate) fn token(&self, environment: &Environment) -> Result<Option<String>, WrongToken> {
        if let Some(token) = self.token.as_ref().map(|token| token.0.as_str()).filter(|token| !token.is_empty()) {
            return checked(token, "--token").map(Some);
        }
        match &self.token_file {
            Some(path) => of_variable(&of_file(path)),
            None => of_variable(environment),
        }
    }
}

/// A file is read by the rules of a variable that names one.
fn of_file(path: &Path) -> Environment {
    [(FILE_VARIABLE, path.as_os_str())].into_iter().collect()
}

fn of_variable(environment: &Environment) -> Result<Option<String>, WrongToken> {
    let path = || environment.path_of_file(VARIABLE).unwrap_or_default();
    match environment.get(VARIABLE) {
        None => Ok(None),
        Some(Ok(value)) => checked(&value.text, value.file.unwrap_or(VARIABLE)).map(Some),
        Some(Err(InvalidVariable::Unreadable(reason))) => Err(WrongToken::Unreadable { path: path(), reason }),
        Some(Err(InvalidVariable::SetTwice)) => Err(WrongToken::SetTwice),
        Some(Err(InvalidVariable::NotText | InvalidVariable::Padded)) => {
            let path = path();
            Err(WrongToken::Characters(if path.is_empty() { VARIABLE.to_owned() } else { path }))
        }
    }
}

fn checked(token: &str, of: &str) -> Result<String, WrongToken> {
    let fits = token.bytes().all(|byte| byte.is_ascii_graphic());
    fits.then(|| token.to_owned()).ok_or_else(|| WrongToken::Characters(of.to_owned()))
}

/// Parses any text: clap would show a wrong one in its message.
#[derive(Clone)]
struct ShownToken(String);

impl FromStr for ShownToken {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        // The shell's `$(…)` removes it too.
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

    fn of_flag(text: &str) -> TokenFlag {
        let token = text.parse().unwrap_or_else(|error| match error {});
        TokenFlag { token: Some(token), token_file: None }
    }

    #[test]
    fn token_fits_a_header_or_is_rejected_unseen() {
        let none = Environment::default();
        assert_eq!(TokenFlag::default().token(&none), Ok(None));
        assert_eq!(of_flag("").token(&none), Ok(None));
        for accepted in ["fb_x", "fb_x\r\n\n"] {
            assert_eq!(of_flag(accepted).token(&none), Ok(Some("fb_x".to_owned())));
            let environment = [(VARIABLE, accepted)].into_iter().collect();
            assert_eq!(TokenFlag::default().token(&environment), Ok(Some("fb_x".to_owned())));
        }
        for wrong in ["fb x", "fb_x ", "fb\r\nX: y", "fé"] {
            let environment = [(VARIABLE, wrong)].into_iter().collect();
            for error in [of_flag(wrong).token(&none), TokenFlag::default().token(&environment)].map(Result::unwrap_err)
            {
                assert!(
                    matches!(&error, WrongToken::Characters(of) if !error.to_string().contains(wrong) && !of.contains("fb"))
                );
            }
            assert!(!format!("{:?}", of_flag(wrong)).contains("fb"));
        }
    }

    #[test]
    fn flag_wins_over_environment_and_file_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let (one, two) = (write("one", "fb_1\n"), write("two", "fb_2"));
        let of_file = |path: &Path| TokenFlag { token: None, token_file: Some(path.to_owned()) };
        let environment: Environment = [(FILE_VARIABLE, two.as_os_str())].into_iter().collect();
        assert_eq!(of_file(&one).token(&environment), Ok(Some("fb_1".to_owned())));
        assert_eq!(of_flag("fb_3").token(&environment), Ok(Some("fb_3".to_owned())));
        assert_eq!(TokenFlag::default().token(&environment), Ok(Some("fb_2".to_owned())));
        let missing = of_file(&folder.path().join("none")).token(&environment).unwrap_err().to_string();
        assert!(missing.contains("none") && missing.contains("No such file"), "{missing}");
        let both = [(FILE_VARIABLE, two.as_os_str()), (VARIABLE, "fb_4".as_ref())].into_iter().collect();
        assert_eq!(TokenFlag::default().token(&both), Err(WrongToken::SetTwice));
    }
}
