//! Asks a running process over its admin port, and words its errors for commands.

use std::io;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use access::Scope;
use anyhow::anyhow;
use config::Role;
use load::ServerConnector;
use serde::de::DeserializeOwned;
use settings::Environment;
use text::OperatorCommand;

use crate::admin_address;
use crate::flags::AdminServer;
use admin_api::dead::ProblemJson;

/// The server is on this machine, or near.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// A stream has a line each second.
const SILENCE_MAX: Duration = Duration::from_secs(15);

/// A process with an admin port.
pub(super) struct AdminClient {
    server: ServerConnector,
    token: Option<String>,
}

impl AdminClient {
    pub(super) const fn new(server: ServerConnector, token: Option<String>) -> Self {
        Self { server, token }
    }

    /// The process that the flags name; without one, the process at the role's address.
    ///
    /// # Errors
    /// No address is known, or the flags can't be used.
    pub(super) fn find(at: &AdminServer, role: Role, environment: &Environment) -> anyhow::Result<Self> {
        let address = admin_address::of_flags(&at.address, role, environment)?;
        Ok(Self::new(at.address.ca.server(&address)?, at.token.token(environment)?))
    }

    /// The address, for messages.
    pub(super) fn address(&self) -> String {
        self.server.target().to_string()
    }

    /// Sends a request. The whole exchange may take `limit`. The inner error is the server's refusal.
    ///
    /// # Errors
    /// The process can't be asked, or its answer isn't that of an admin port with this path.
    pub(super) fn ask<T: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        body: &[u8],
        limit: Option<Duration>,
    ) -> anyhow::Result<Result<T, ProblemJson>> {
        match self.fetch(method, path, body, limit)? {
            Ok(answer) => serde_json::from_slice(&answer).map(Ok).map_err(|error| self.failed(&error.into())),
            Err(problem) => Ok(Err(problem)),
        }
    }

    /// The same for a body that isn't JSON.
    ///
    /// # Errors
    /// The process can't be asked, or its answer isn't that of an admin port with this path.
    pub(super) fn fetch(
        &self,
        method: &str,
        path: &str,
        body: &[u8],
        limit: Option<Duration>,
    ) -> anyhow::Result<Result<Vec<u8>, ProblemJson>> {
        let asked = self.server.ask((method, path, body), self.token.as_deref(), (CONNECT_MAX, limit));
        let answer = asked.map_err(|error| self.failed(&error))?;
        if answer.status == 200 {
            return Ok(Ok(answer.body));
        }
        self.problem(path, &answer.body).map(Err)
    }

    /// Asks for a stream, and passes on each of its lines until it ends, `take` returns false, or `stop` is set. The inner error is the server's
    /// refusal.
    ///
    /// # Errors
    /// The process can't be asked, or the stream is incomplete.
    pub(super) fn lines(
        &self,
        path: &str,
        stop: &AtomicBool,
        take: &mut dyn FnMut(&[u8]) -> bool,
    ) -> anyhow::Result<Result<(), ProblemJson>> {
        let asked = self.server.lines(path, self.token.as_deref(), (CONNECT_MAX, SILENCE_MAX), stop, take);
        match asked.map_err(|error| self.failed(&error))? {
            None => Ok(Ok(())),
            Some(answer) => self.problem(path, &answer.body).map(Err),
        }
    }

    fn problem(&self, path: &str, body: &[u8]) -> anyhow::Result<ProblemJson> {
        serde_json::from_slice(body).map_err(|_| {
            let path = path.split('?').next().unwrap_or(path);
            self.failed(&io::Error::other(format!(
                "the server has no {path}, so it has another role or version, or isn't Forebay"
            )))
        })
    }

    fn failed(&self, error: &io::Error) -> anyhow::Error {
        let address = self.address();
        anyhow!(
            "can't ask the server at {address}: {error}. Start Forebay, or name its admin address with --admin or its \
             configuration with --config"
        )
    }

    /// The error for a request that the server rejected.
    pub(super) fn refused(&self, problem: ProblemJson) -> anyhow::Error {
        anyhow!("the server at {} rejected the request: {}", self.address(), for_commands(problem))
    }
}

/// The server's messages are for clients of its API: they name headers and parameters, which a shell's user doesn't type.
fn for_commands(problem: ProblemJson) -> String {
    let make = OperatorCommand::TokenNew(Scope::Admin.as_str());
    let ProblemJson { code, detail, .. } = problem;
    match code.as_str() {
        "unauthorized" if detail.contains("Authorization") => {
            format!(
                "the command needs a token with the scope admin, or read if it changes nothing: set FOREBAY_TOKEN_FILE to a \
                 file with it, or FOREBAY_TOKEN. Create one: {make}"
            )
        }
        "unauthorized" | "forbidden" => format!("{detail}. Set FOREBAY_TOKEN to another token, or create one: {make}"),
        "cross_origin" => {
            format!(
                "--admin must have an IP address, localhost or a name in allowed_hosts, unless tokens exist. Create a token: {make}"
            )
        }
        "all" => "this command would drop all dead letters: add a filter, or --all".to_owned(),
        _ => detail,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_speak_of_commands() {
        for (code, detail, wanted) in [
            (
                "unauthorized",
                "this request needs a token: send it as `Authorization: Bearer fb_…`",
                "set FOREBAY_TOKEN_FILE",
            ),
            ("unauthorized", "the token has expired: send a current one", "has expired"),
            ("forbidden", "the token lacks the scope `admin`", "--scope admin"),
            ("cross_origin", "the header Host is `x`: use an IP address or `localhost`", "--admin"),
            ("all", "say which, or add all=true", "--all"),
            ("sink", "there is no sink x", "there is no sink x"),
        ] {
            let said = for_commands(ProblemJson { status: 400, code: code.into(), detail: detail.into() });
            assert!(said.contains(wanted), "{said}");
            assert!(!["Authorization", "header", "all=true"].iter().any(|word| said.contains(word)), "{said}");
        }
    }
}
