//! Requests to the admin port of a process whose answers are kept as they are.

use std::io;
use std::time::Duration;

use config::Role;
use load::{ServerConnector, ServerResponse};
use settings::Environment;

use crate::admin_address;
use crate::flags::{AdminAddress, Examined};

/// The process is on this machine, or near.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// The admin port of a process.
pub struct AdminPort {
    server: ServerConnector,
    token: Option<String>,
}

impl AdminPort {
    /// That of the process that the flags name; without one, of the process at the role's address.
    ///
    /// # Errors
    /// No address is known, or the flags can't be used.
    pub fn find(flags: &Examined, role: Role, environment: &Environment) -> anyhow::Result<Self> {
        let Examined { config, admin, ca, token, .. } = flags.clone();
        let at = AdminAddress { config, admin, ca };
        let address = admin_address::of_flags(&at, role, environment)?;
        Ok(Self { server: at.ca.server(&address)?, token: token.token(environment)? })
    }

    /// The address, for messages.
    #[must_use]
    pub fn address(&self) -> String {
        self.server.target().to_string()
    }

    /// Sends a request without a body, and returns the response with any status. It blocks, for `limit` at most.
    ///
    /// # Errors
    /// There is no whole response.
    pub fn ask(&self, method: &str, path: &str, limit: Duration) -> io::Result<ServerResponse> {
        let asked = self.server.ask((method, path, &[]), self.token.as_deref(), (CONNECT_MAX.min(limit), Some(limit)));
        // The system's text is there, so its number says nothing more.
        let plain = |error: io::Error| {
            io::Error::other(error.to_string().split(" (os error").next().unwrap_or_default().to_owned())
        };
        asked.map_err(plain)
    }
}
