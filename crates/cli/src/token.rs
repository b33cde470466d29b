//! `forebay token …`: creates, lists and revokes tokens. It changes a file that a running server watches, so it works with and without a
//! server.

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use access::{InvalidToken, Name, NewToken, PartialStatus, RANDOM_BYTES, Scope, Scopes, Token, contains_token};
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
        created,
        expires: new.expires.map(lasts),
    }
}

/// Whether a repeated command changes nothing: both authorize the same requests, and the known one, which keeps its times, has not expired.
fn is_same(known: &Token, token: &Token) -> bool {
    let of = |token: &Token| (token.digest, token.scopes, token.source.clone(), token.origin, token.partial);
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
    let heads = ["NAME", "SCOPES", "SOURCE"].map(Column::text).into_iter();
    let times = [Column::text("EXPIRES"), Column::text("CREATED")];
    let mut table = Table::new(
        heads
            .chain(has_origin.then(|| Column::whole("GATEWAY ID")))
            .chain(has_partial.then(|| Column::text("PARTIAL")))
            .chain(times)
            .collect::<Vec<_>>(),
    );
    for token in tokens {
        let Token { name, scopes, source, origin, partial, created, .. } = token;
        let scopes: Vec<&str> = scopes.iter().map(|scope| scope.as_str()).collect();
        let partial = has_partial.then(|| partial.map_or("-", PartialStatus::as_str).to_owned());
        let expires = match token.expires {
            None => "never".to_owned(),
            Some(expires) if token.is_expired(now) => format!("expired {}", rfc3339::format(expires)),
            Some(expires) => rfc3339::format(expires),
        };
        let origin = has_origin.then(|| origin.map_or_else(|| "-".to_owned(), |origin| origin.to_string()));
        let texts = [name.to_string(), scopes.join(","), source.to_string()].into_iter();
        table.add(texts.chain(origin).chain(partial).chain([expires, rfc3339::format(*created)]).collect::<Vec<_>>());
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
