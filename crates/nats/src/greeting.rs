//! A server's description of itself, and the login.

use serde::Deserialize;
use serde_json::json;

use crate::connect_options::ConnectOptions;
use crate::credentials::Credentials;
use crate::error::Error;
use crate::protocol;
use crate::server::Account;

pub(crate) const INVALID_GREETING: Error = Error::Unexpected(
    "the server's first line isn't that of NATS: check that `url` is the URL of \
     a NATS server",
);

/// The default maximum of a server.
pub(crate) const MAX_PAYLOAD: usize = 1024 * 1024;

/// A server's description of itself.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Greeting {
    /// The server's version.
    pub version: String,
    /// The maximum of bytes of a message, including headers.
    pub max_payload: usize,
    headers: bool,
    pub(crate) tls_required: bool,
    nonce: String,
    /// Addresses of the cluster's servers, as `HOST:PORT`.
    pub(crate) connect_urls: Vec<String>,
    /// Whether the server is in lame duck mode: it shuts down soon.
    pub(crate) ldm: bool,
}

impl Greeting {
    /// Reads the JSON of an INFO line.
    pub(crate) fn parse(json: &str) -> Result<Self, Error> {
        let mut greeting: Self = serde_json::from_str(json).map_err(|_| INVALID_GREETING)?;
        if greeting.max_payload == 0 {
            greeting.max_payload = MAX_PAYLOAD;
        }
        Ok(greeting)
    }

    /// Appends the login.
    pub(crate) fn log_in(&self, options: &ConnectOptions, output: &mut Vec<u8>) -> Result<(), Error> {
        if !self.headers {
            return Err(Error::Misfit("it rejects headers: enable them in the server's configuration".to_owned()));
        }
        let mut login = json!({
            "verbose": false, "pedantic": false, "headers": true, "no_responders": true, "protocol": 1,
            "lang": "rust", "name": options.name, "version": env!("CARGO_PKG_VERSION"),
            "tls_required": options.servers.is_secure,
        });
        match &options.servers.account {
            Account::Anonymous => {}
            Account::Token(token) => login["auth_token"] = json!(token),
            Account::User { name, password } => (login["user"], login["pass"]) = (json!(name), json!(password)),
        }
        if let Some(path) = &options.credentials {
            let credentials = Credentials::read(path).map_err(Error::Misfit)?;
            login["sig"] = json!(credentials.sign(&self.nonce));
            match credentials.jwt {
                Some(jwt) => login["jwt"] = json!(jwt),
                None => login["nkey"] = json!(credentials.public_key),
            }
        }
        protocol::command(output, &["CONNECT", &login.to_string()]);
        Ok(())
    }
}
