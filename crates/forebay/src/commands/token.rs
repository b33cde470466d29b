//! `forebay token …`: makes tokens, lists them, revokes them. It changes a file that a running server looks at, so it works
//! with one and without.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use access::{InvalidSecret, Name, RANDOM_BYTES, Scope, Scopes, Secret, Token};
use config::owner_file;
use config::token_file::{Kept, TokenFileError};
use event::rfc3339;
use eventlog::unix_microseconds;
use settings::files;

use crate::cli::{TokenCommand, TokenNew, TokenPlace};
use crate::commands::output::Output;
use crate::log;

/// Why the command can't do its work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TokenCommandError {
    /// The file of tokens can't be used.
    #[error(transparent)]
    File(#[from] TokenFileError),
    /// The name belongs to another token.
    #[error("there is a token {0} already: revoke it first, or choose another name")]
    Exists(Name),
    /// There is no such token.
    #[error("there is no token {0}; `forebay token list` shows those that there are")]
    Unknown(Name),
    /// Only the scope `deliver` has lanes to bind to an origin.
    #[error("--origin says which gateway's batches a token delivers: add --scope deliver, or leave --origin out")]
    Unbound,
    /// The file of the token itself can't be used.
    #[error("can't {what} {}: {source}; run this command as the file's owner", path.display())]
    SecretFile {
        /// The action.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// It contains something else, which the error doesn't show.
    #[error("{} holds no token: {source}; remove the file to create a new token", path.display())]
    NoSecret {
        /// The file.
        path: PathBuf,
        /// The form of a token.
        source: InvalidSecret,
    },
    /// No random bytes.
    #[error("the operating system gives no random bytes: {0}")]
    Random(getrandom::Error),
    /// The standard output can't be written.
    #[error("can't write to the standard output: {0}")]
    Output(io::Error),
}

/// Runs the command and gives the process's exit code.
///
/// # Errors
/// [`TokenCommandError`] says what stands in the way.
pub(crate) fn run(command: &TokenCommand) -> Result<u8, TokenCommandError> {
    match command {
        TokenCommand::New(new) => make(new),
        TokenCommand::List(place) => list(place),
        TokenCommand::Revoke(revoke) => take_away(&revoke.place, &revoke.name),
    }?;
    Ok(0)
}

fn make(new: &TokenNew) -> Result<(), TokenCommandError> {
    if new.origin.is_some() && !new.scope.contains(&Scope::Deliver) {
        return Err(TokenCommandError::Unbound);
    }
    let file = new.place.file();
    let mut made = None;
    // The secret's file is written under the lock of the tokens' file: of two concurrent commands one makes it, and the other reads it.
    file.change(|tokens| {
        let known = tokens.iter().find(|known| known.name == new.name);
        if known.is_some() && new.secret.is_none() {
            return Err(TokenCommandError::Exists(new.name.clone()));
        }
        let secret = match &new.secret {
            Some(path) => secret_of_file(path, known.is_none())?,
            None => random_secret()?,
        };
        let token = token(new, &secret);
        match known {
            Some(known) if is_same(known, &token) => {}
            Some(_) => return Err(TokenCommandError::Exists(new.name.clone())),
            None => tokens.push(token),
        }
        made = Some(secret);
        Ok(())
    })?;
    let place = file.path().display();
    match (&new.secret, made) {
        (None, Some(secret)) => {
            print(format_args!("{}\n", secret.expose()))?;
            log::info(format_args!("token {} is in {place}; it is shown only now", new.name));
        }
        (Some(secret), _) => {
            log::info(format_args!("token {} is in {place}; the token itself is in {}", new.name, secret.display()));
        }
        (None, None) => {}
    }
    Ok(())
}

/// The token as the file keeps it.
fn token(new: &TokenNew, secret: &Secret) -> Token {
    let created = unix_microseconds();
    let lasts = |expires: Duration| created.saturating_add(i64::try_from(expires.as_micros()).unwrap_or(i64::MAX));
    Token {
        name: new.name.clone(),
        digest: secret.digest(),
        scopes: new.scope.iter().copied().collect(),
        source: new.source.clone().unwrap_or_else(|| new.name.clone()),
        origin: new.origin,
        created,
        expires: new.expires.map(lasts),
    }
}

/// Whether a repeated command changes nothing: both authorize the same requests, and the known one, which keeps its times, has not expired.
fn is_same(known: &Token, token: &Token) -> bool {
    let of = |token: &Token| (token.digest, token.scopes, token.source.clone(), token.origin);
    of(known) == of(token) && !known.is_expired(token.created)
}

fn random_secret() -> Result<Secret, TokenCommandError> {
    let mut random = [0; RANDOM_BYTES];
    getrandom::fill(&mut random).map_err(TokenCommandError::Random)?;
    Ok(Secret::of_random(random))
}

/// Reads the token in this file, or creates the file with a new token if that is allowed.
fn secret_of_file(path: &Path, may_create: bool) -> Result<Secret, TokenCommandError> {
    let failed = |what| move |source| TokenCommandError::SecretFile { what, path: path.to_owned(), source };
    match files::read_text(path) {
        Ok(text) => {
            let none = |source| TokenCommandError::NoSecret { path: path.to_owned(), source };
            text.trim_end().parse().map_err(none)
        }
        Err(error) if may_create && error.kind() == io::ErrorKind::NotFound => {
            let secret = random_secret()?;
            owner_file::replace(path, &format!("{}\n", secret.expose())).map_err(failed("write"))?;
            Ok(secret)
        }
        Err(error) => Err(failed("read")(error)),
    }
}

fn take_away(place: &TokenPlace, name: &Name) -> Result<(), TokenCommandError> {
    let file = place.file();
    // A directory that isn't there has no token, and isn't made for that.
    if file.read()?.is_none() {
        return Err(TokenCommandError::Unknown(name.clone()));
    }
    let mut missing = Vec::new();
    file.change(|tokens| {
        let at = tokens.iter().position(|known| known.name == *name);
        let revoked = tokens.remove(at.ok_or_else(|| TokenCommandError::Unknown(name.clone()))?);
        let left = Scopes::of_all(tokens);
        missing = revoked.scopes.iter().filter(|scope| !left.has(*scope)).collect();
        Ok::<_, TokenCommandError>(())
    })?;
    for scope in missing {
        log::info(format_args!(
            "no token with the scope {scope} is left; requests that need one are refused. Make one: forebay token new NAME --scope {scope}"
        ));
    }
    Ok(())
}

fn list(place: &TokenPlace) -> Result<(), TokenCommandError> {
    let file = place.file();
    let Some(Kept { mut tokens, .. }) = file.read()? else {
        log::info(format_args!("no token was ever made: there is no {}", file.path().display()));
        return Ok(());
    };
    tokens.sort_by(|one, other| one.name.cmp(&other.name));
    let now = unix_microseconds();
    let lines: String = tokens.iter().map(|token| line(token, now)).collect();
    print(format_args!("{lines}"))
}

fn line(token: &Token, now: i64) -> String {
    let Token { name, scopes, source, created, .. } = token;
    let scopes: Vec<&str> = scopes.iter().map(|scope| scope.as_str()).collect();
    let expires = match token.expires {
        None => "never expires".to_owned(),
        Some(expires) if token.is_expired(now) => format!("expired {}", rfc3339::format(expires)),
        Some(expires) => format!("expires {}", rfc3339::format(expires)),
    };
    let origin = token.origin.map_or_else(String::new, |origin| format!("  origin {origin}"));
    format!("{name}  {}  source {source}{origin}  made {}  {expires}\n", scopes.join(","), rfc3339::format(*created))
}

fn print(text: std::fmt::Arguments<'_>) -> Result<(), TokenCommandError> {
    let mut output = Output::lock();
    output.write_fmt(text).and_then(|()| output.flush()).map_err(TokenCommandError::Output)
}
