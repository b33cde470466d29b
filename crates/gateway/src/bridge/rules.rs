//! The rules of bridges, as the configuration has them.

use std::fmt;
use std::time::Duration;

use access::Scope;
use nats::Subject;

use super::methods::Methods;
use super::path::PathPattern;

/// Header names of requests that are never passed: credentials, and those of one connection. The others are set by Forebay.
const NEVER_PASSED: [&str; 16] = [
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "cookie",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "traceparent",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-api-key",
];
/// Beginnings of names that Forebay or NATS use.
const RESERVED: [&str; 2] = ["forebay-", "nats-"];

/// The token that the requests of a bridge need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BridgeAccess {
    /// None.
    Free,
    /// One with this scope, if the port needs tokens.
    Scope(Scope),
}

/// A bridge: the requests of a path that a service answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BridgeRule {
    /// The path.
    pub path: PathPattern,
    /// The subject of the service.
    pub subject: Subject,
    /// The token that its requests need.
    pub access: BridgeAccess,
    /// How long the service may take for an answer.
    pub timeout: Duration,
    /// The methods of its requests.
    pub methods: Methods,
    /// The names of the request headers that the service gets too, in lower case.
    pub pass: Vec<Box<str>>,
    /// Requests that may wait at the same time, of all shards.
    pub max_waiting: usize,
}

/// Why a header can't be passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPass {
    /// No header has this name.
    #[error("expected the name of a header, as in Accept-Language")]
    Name,
    /// It is a credential, is about the connection, or Forebay sets it.
    #[error("this header is never passed: it has credentials, is about the connection, or Forebay sets it")]
    Never,
}

impl BridgeRule {
    /// Its methods and its path. No two bridges have the same.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{} {}", self.methods, self.path)
    }
}

impl fmt::Display for BridgeRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scope = match self.access {
            BridgeAccess::Free => "none",
            BridgeAccess::Scope(scope) => scope.as_str(),
        };
        let timeout = self.timeout.as_millis();
        write!(f, "{} {} → {}, scope {scope}, timeout {timeout} ms", self.methods, self.path, self.subject)
    }
}

/// The name of a header of `pass`, in lower case.
///
/// # Errors
/// The header isn't one, or can't be passed.
pub fn passed_header(name: &str) -> Result<Box<str>, InvalidPass> {
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    if name.is_empty() || name.len() > 64 || !name.bytes().all(is_of_name) {
        return Err(InvalidPass::Name);
    }
    let name = name.to_ascii_lowercase();
    if NEVER_PASSED.contains(&&*name) || RESERVED.iter().any(|reserved| name.starts_with(reserved)) {
        return Err(InvalidPass::Never);
    }
    Ok(name.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_and_own_headers_are_not_passed() {
        assert_eq!(passed_header("Accept-Language").as_deref(), Ok("accept-language"));
        for name in ["Authorization", "COOKIE", "X-Api-Key", "Forebay-Source", "Nats-Msg-Id", "Connection", "Host"] {
            assert_eq!(passed_header(name), Err(InvalidPass::Never), "{name}");
        }
        for name in ["", "a b", "a:", "a\r\nb", "é"] {
            assert_eq!(passed_header(name), Err(InvalidPass::Name), "{name}");
        }
    }
}
