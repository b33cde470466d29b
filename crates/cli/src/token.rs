//! `forebay token …`: creates, lists and revokes tokens. It changes a file that a running server watches, so it works with and without a
//! server.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use access::{
    InvalidToken, Name, NewToken, PartialStatus, RANDOM_BYTES, Scope, Scopes, Token, TypePatterns, contains_token,
};
use anyhow::{anyhow, bail};
use config::token_file::{Kept, TokenFile};
use config::{Role, owner_file};
use eventlog::unix_microseconds;
use serde::Serialize;
use settings::{Environment, files};
use text::{OperatorCommand, rfc3339};

use crate::flags::{TokenCommand, TokenList, TokenNew, TokenPlace};
use crate::output::print;
use crate::table::{Column, Table, terminal_width};

/// Runs the command and returns the exit code.
///
/// # Errors
/// The message says what failed.
pub(crate) fn run(command: &TokenCommand, role: Option<Role>, environment: &Environment) -> anyhow::Result<u8> {
    let file = |place: &TokenPlace| place.file(role.unwrap_or(Role::Serve), environment);
    match command {
        TokenCommand::New(new) => make(new, &file(&new.place)?),
        TokenCommand::List(tokens) => list(tokens, &file(&tokens.place)?),
        TokenCommand::Revoke(revoke) => take_away(&file(&revoke.place)?, &revoke.name),
    }?;
    Ok(0)
}

fn make(new: &TokenNew, file: &TokenFile) -> anyhow::Result<()> {
    if new.gateway.is_some() && !new.scope.contains(&Scope::Deliver) {
        bail!(
            "--gateway binds a token of the scope deliver to one gateway: add --scope deliver, or leave --gateway out"
        );
    }
    if new.partial.is_some() && !new.scope.contains(&Scope::Ingest) {
        bail!("--partial sets the status of batches that are posted: add --scope ingest, or leave --partial out");
    }
    if !new.types.is_empty() && !new.scope.contains(&Scope::Ingest) {
        bail!("--types limits the events that are posted: add --scope ingest, or leave --types out");
    }
    let names = [Some(&new.name), new.source.as_ref()];
    if names.into_iter().flatten().any(|name| contains_token(name.as_str())) {
        bail!(
            "the name or the source is a token, and both are shown in logs and metrics: choose another name, and revoke the token"
        );
    }
    let mut made = None;
    // The secret's file is written under the lock of the tokens' file: of two concurrent commands one creates it, and the other reads it.
    file.change(|tokens| {
        let known = tokens.iter().find(|known| known.name == new.name);
        if known.is_some() && new.secret.is_none() {
            bail!(exists(&new.name));
        }
        let secret = match &new.secret {
            Some(path) => secret_of_file(path, known.is_none())?,
            None => random_secret()?,
        };
        let token = token(new, &secret);
        match known {
            Some(known) if is_same(known, &token) => {}
            Some(_) => bail!(exists(&new.name)),
            None => tokens.push(token),
        }
        made = Some(secret);
        Ok(())
    })?;
    let place = file.path().display();
    match (&new.secret, made) {
        (None, Some(secret)) => {
            print(|output| writeln!(output, "{}", secret.expose()))?;
            tracing::info!("token {} is in {place}; it is shown only now", new.name);
        }
        (Some(secret), _) => {
            tracing::info!("token {} is in {place}; the token itself is in {}", new.name, secret.display());
        }
        (None, None) => {}
    }
    Ok(())
}

/// The token as the file keeps it.
fn token(new: &TokenNew, secret: &NewToken) -> Token {
    let created = unix_microseconds();
    let lasts = |expires: Duration| created.saturating_add(i64::try_from(expires.as_micros()).unwrap_or(i64::MAX));
    Token {
        name: new.name.clone(),
        digest: secret.digest(),
        scopes: new.scope.iter().copied().collect(),
        source: new.source.clone().unwrap_or_else(|| new.name.clone()),
        origin: new.gateway,
        partial: new.partial,
        types: TypePatterns::new(new.types.clone()).map(Arc::new),
        created,
        expires: new.expires.map(lasts),
    }
}

/// Whether a repeated command changes nothing: both authorize the same requests, and the known one, which keeps its times, has not expired.
fn is_same(known: &Token, token: &Token) -> bool {
    let of = |token: &Token| {
        (token.digest, token.scopes, token.source.clone(), token.origin, token.partial, token.types.clone())
    };
    of(known) == of(token) && !known.is_expired(token.created)
}

fn random_secret() -> anyhow::Result<NewToken> {
    let mut random = [0; RANDOM_BYTES];
    getrandom::fill(&mut random)
        .map_err(|error| anyhow!("the operating system returned no random bytes: {error}. Check /dev/urandom"))?;
    Ok(NewToken::of_random(random))
}

/// Reads the token in this file, or creates the file with a new token if that is allowed.
fn secret_of_file(path: &Path, may_create: bool) -> anyhow::Result<NewToken> {
    let shown = path.display();
    let failed = |what, error| anyhow!("can't {what} {shown}: {error}; run this command as the file's owner");
    match files::read_text(path) {
        // The message doesn't show what the file contains.
        Ok(text) => text.trim_end().parse().map_err(|error: InvalidToken| {
            anyhow!("{shown} doesn't contain a token: {error}. Remove the file to create a new token")
        }),
        Err(error) if may_create && error.kind() == io::ErrorKind::NotFound => {
            let secret = random_secret()?;
            owner_file::replace(path, &format!("{}\n", secret.expose())).map_err(|error| failed("write", error))?;
            Ok(secret)
        }
        Err(error) => Err(failed("read", error)),
    }
}

fn take_away(file: &TokenFile, name: &Name) -> anyhow::Result<()> {
    // A missing directory has no token, and isn't created here.
    if file.read()?.is_none() {
        bail!(unknown(name));
    }
    let mut missing = Vec::new();
    file.change(|tokens| {
        let at = tokens.iter().position(|known| known.name == *name);
        let revoked = tokens.remove(at.ok_or_else(|| anyhow!(unknown(name)))?);
        let left = Scopes::of_all(tokens);
        missing = revoked.scopes.iter().filter(|scope| !left.has(*scope)).collect();
        anyhow::Ok(())
    })?;
    for scope in missing {
        tracing::info!(
            "no token with the scope {scope} is left: requests that need one are rejected. Create one: {}",
            OperatorCommand::TokenNew(scope.as_str())
        );
    }
    Ok(())
}

fn list(list: &TokenList, file: &TokenFile) -> anyhow::Result<()> {
    let Some(Kept { mut tokens, .. }) = file.read()? else {
        tracing::info!("there are no tokens: the file {} does not exist", file.path().display());
        return Ok(());
    };
    tokens.sort_by(|one, other| one.name.cmp(&other.name));
    let now = unix_microseconds();
    if list.output.is_json() {
        return print(|output| {
            tokens
                .iter()
                .try_for_each(|token| writeln!(output, "{}", serde_json::to_string(&TokenJson::of(token, now))?))
        });
    }
    let text = table(&tokens, now, terminal_width());
    print(|output| output.write_all(text.as_bytes()))
}

fn table(tokens: &[Token], now: i64, terminal: Option<usize>) -> String {
    if tokens.is_empty() {
        return "no tokens\n".to_owned();
    }
    let has_origin = tokens.iter().any(|token| token.origin.is_some());
    let has_partial = tokens.iter().any(|token| token.partial.is_some());
    let has_types = tokens.iter().any(|token| token.types.is_some());
    let heads = ["NAME", "SCOPES", "SOURCE"].map(Column::text).into_iter();
    let times = [Column::text("EXPIRES"), Column::text("CREATED")];
    let mut table = Table::new(
        heads
            .chain(has_origin.then(|| Column::whole("GATEWAY ID")))
            .chain(has_partial.then(|| Column::text("PARTIAL")))
            .chain(has_types.then(|| Column::text("TYPES")))
            .chain(times)
            .collect::<Vec<_>>(),
    );
    for token in tokens {
        let Token { name, scopes, source, origin, partial, types, created, .. } = token;
        let scopes: Vec<&str> = scopes.iter().map(|scope| scope.as_str()).collect();
        let partial = has_partial.then(|| partial.map_or("-", PartialStatus::as_str).to_owned());
        let types = has_types.then(|| types.as_ref().map_or_else(|| "-".to_owned(), |types| types.to_string()));
        let expires = match token.expires {
            None => "never".to_owned(),
            Some(expires) if token.is_expired(now) => format!("expired {}", rfc3339::format(expires)),
            Some(expires) => rfc3339::format(expires),
        };
        let origin = has_origin.then(|| origin.map_or_else(|| "-".to_owned(), |origin| origin.to_string()));
        let texts = [name.to_string(), scopes.join(","), source.to_string()].into_iter();
        table.add(
            texts
                .chain(origin)
                .chain(partial)
                .chain(types)
                .chain([expires, rfc3339::format(*created)])
                .collect::<Vec<_>>(),
        );
    }
    table.text(terminal)
}

/// A token as programs read it.
#[derive(Debug, Serialize)]
struct TokenJson {
    name: String,
    scopes: Vec<&'static str>,
    source: String,
    origin: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    partial: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    types: Option<Vec<String>>,
    made: String,
    expires: Option<String>,
    is_expired: bool,
}

impl TokenJson {
    fn of(token: &Token, now: i64) -> Self {
        Self {
            name: token.name.to_string(),
            scopes: token.scopes.iter().map(|scope| scope.as_str()).collect(),
            source: token.source.to_string(),
            origin: token.origin.map(|origin| origin.to_string()),
            partial: token.partial.map(PartialStatus::as_str),
            types: token.types.as_ref().map(|types| types.iter().map(str::to_owned).collect()),
            made: rfc3339::format(token.created),
            expires: token.expires.map(rfc3339::format),
            is_expired: token.is_expired(now),
        }
    }
}

fn exists(name: &Name) -> String {
    format!("the token {name} already exists: revoke it first, or choose another name")
}

fn unknown(name: &Name) -> String {
    format!("there is no token {name}: {} lists the tokens", OperatorCommand::TokenList)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails loudly")]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        new: TokenNew,
    }

    fn make_with(arguments: &str, file: &TokenFile) -> anyhow::Result<()> {
        let line = Line::try_parse_from(["new"].into_iter().chain(arguments.split(' ')))?;
        make(&line.new, file)
    }

    #[test]
    fn types_limit_tokens_and_are_listed() {
        let folder = tempfile::tempdir().unwrap();
        let file = TokenFile::within(folder.path());
        let secret = |name: &str| format!("--secret {}", folder.path().join(name).display());
        make_with(&format!("page --scope ingest --types segment.*,orders {}", secret("a")), &file).unwrap();
        make_with(&format!("shop --scope ingest {}", secret("b")), &file).unwrap();
        let tokens = file.read().unwrap().unwrap().tokens;
        assert_eq!(["segment.track", "orders", "access"].map(|name| tokens[0].allows(name)), [true, true, false]);
        assert!(tokens[1].allows("access"));
        let text = table(&tokens, 0, None);
        let cells: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(cells[0], ["NAME", "SCOPES", "SOURCE", "TYPES", "EXPIRES", "CREATED"]);
        assert_eq!([cells[1][3], cells[2][3]], ["segment.*,orders", "-"]);
        assert_eq!(TokenJson::of(&tokens[0], 0).types.unwrap(), ["segment.*", "orders"]);
        assert!(!table(&tokens[1..], 0, None).contains("TYPES"));
        // The same command again changes nothing; other types are another token.
        make_with(&format!("page --scope ingest --types segment.*,orders {}", secret("a")), &file).unwrap();
        assert!(make_with(&format!("page --scope ingest --types orders {}", secret("a")), &file).is_err());
    }

    #[test]
    fn wrong_types_are_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let file = TokenFile::within(folder.path());
        for (arguments, reason) in [
            ("a --scope read --types orders", "--types limits the events that are posted"),
            ("a --scope ingest --types Orders", "a type must be a name"),
            ("a --scope ingest --types *.track", "a type must be a name"),
        ] {
            let error = make_with(arguments, &file).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
        assert!(file.read().unwrap().is_none_or(|kept| kept.tokens.is_empty()));
    }
}
