//! Follows the file of tokens while the server runs: a command's changes are in use within a second.

use std::sync::Arc;

use access::{TokenSet, Tokens};
use config::token_file::{Kept, TokenFile, TokenFileError};
use text::counted;

use crate::file_stamp::{self, Stamp};

/// The file, and its last stamp.
pub(crate) struct TokenWatch {
    file: TokenFile,
    seen: Stamp,
    /// The last thing that was warned of: once is enough.
    warned: Option<String>,
    tokens: Arc<Tokens>,
}

impl TokenWatch {
    /// Reads the tokens for the first time.
    ///
    /// # Errors
    /// The file is there, and can't be read.
    pub(crate) fn start(file: TokenFile) -> Result<Self, TokenFileError> {
        // Stamped before it is read: a change in between is detected as a change.
        let seen = Stamp::of(file.path());
        let set = file.read()?.map_or_else(TokenSet::none, Kept::into_set);
        Ok(Self { file, seen, warned: None, tokens: Arc::new(Tokens::new(set)) })
    }

    /// The tokens, which follow the file for as long as [`TokenWatch::follow`] runs.
    pub(crate) const fn tokens(&self) -> &Arc<Tokens> {
        &self.tokens
    }

    /// Follows the file until the future is dropped.
    pub(crate) async fn follow(mut self) {
        file_stamp::follow(|| self.check()).await;
    }

    /// Reads the file again if it has changed. A missing or unreadable file changes nothing: an accident neither lets a client in nor shuts
    /// one out.
    fn check(&mut self) {
        let stamp = Stamp::of(self.file.path());
        if stamp == self.seen {
            return;
        }
        match self.file.read() {
            Ok(Some(kept)) => {
                let tokens = counted(kept.tokens.len(), "token");
                tracing::info!("{} has changed: {tokens}", self.file.path().display());
                // A file that was removed and created again lacks the scopes that the server remembers.
                let made = self.tokens.current().made();
                self.tokens.publish(kept.into_set().remembering(made));
                (self.seen, self.warned) = (stamp, None);
            }
            Ok(None) => self.warn(format!("{} is gone", self.file.path().display())),
            Err(error) => self.warn(error.to_string()),
        }
    }

    fn warn(&mut self, what: String) {
        if self.warned.as_ref() != Some(&what) {
            tracing::warn!("{what}: the previous tokens stay valid. Correct or restore the file");
            self.warned = Some(what);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use access::{NewToken, Scope, Token};

    fn add(file: &TokenFile, number: u8) {
        let token = Token {
            name: format!("t{number}").parse().unwrap(),
            digest: NewToken::of_random([number; 32]).digest(),
            scopes: [Scope::Admin].into_iter().collect(),
            source: "x".parse().unwrap(),
            origin: None,
            partial: None,
            types: None,
            created: 0,
            expires: None,
        };
        let push = |tokens: &mut Vec<Token>| {
            tokens.push(token);
            Ok::<_, TokenFileError>(())
        };
        file.change(push).unwrap();
    }

    #[test]
    fn invalid_file_keeps_the_previous_tokens() {
        let folder = tempfile::tempdir().unwrap();
        let file = TokenFile::within(folder.path());
        let mut watch = TokenWatch::start(file.clone()).unwrap();
        let tokens = watch.tokens().clone();
        let mut state = || {
            watch.check();
            (tokens.generation(), tokens.current().were_made())
        };
        assert_eq!(state(), (0, false));
        add(&file, 1);
        assert_eq!([state(), state()], [(1, true); 2], "read once");
        let sound = fs::read(file.path()).unwrap();
        fs::write(file.path(), &sound[..sound.len() / 2]).unwrap();
        assert_eq!([state(), state()], [(1, true); 2]);
        fs::remove_file(file.path()).unwrap();
        assert_eq!([state(), state()], [(1, true); 2]);
        fs::write(file.path(), &sound).unwrap();
        assert_eq!(state(), (2, true));
        add(&file, 2);
        assert_eq!(state(), (3, true));
        let none = fs::read_to_string(file.path()).unwrap().replace("\"admin\"", "\"ingest\"");
        fs::write(file.path(), none).unwrap();
        assert_eq!(state(), (4, true));
        assert!(tokens.current().made().has(Scope::Admin) && !tokens.current().scopes().has(Scope::Admin));
    }
}
