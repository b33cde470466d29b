//! The flags of commands that send events.

use clap::Args;
use load::{IngestEndpoint, ServerUrl};
use settings::Environment;

use super::{CaFlag, TokenFlag};

/// Where to send events, and as which type.
#[derive(Clone, Debug, Args)]
pub(crate) struct SendFlags {
    /// The server
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080")]
    url: ServerUrl,
    #[command(flatten)]
    ca: CaFlag,
    /// The type of the events; without it, the server finds the type of each event
    #[arg(long = "type", value_name = "TYPE", value_parser = type_name)]
    event_type: Option<String>,
    #[command(flatten)]
    token: TokenFlag,
}

impl SendFlags {
    /// The server, and the headers of each event.
    ///
    /// # Errors
    /// No authority can be trusted, or the token can't be in a header.
    pub(crate) fn destination(self) -> anyhow::Result<IngestEndpoint> {
        let token = self.token.token(&Environment::of(std::env::vars_os()))?;
        Ok(IngestEndpoint { server: self.ca.server(&self.url)?, event_type: self.event_type, token })
    }
}

fn type_name(text: &str) -> Result<String, String> {
    event::TypeName::new(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}
