//! Addresses of servers as settings.

use net::http_client::{Endpoint, InvalidEndpoint};
use settings::InvalidValue;

/// Parses the address of a server, which has no user.
pub(crate) fn parse(text: &str) -> Result<Endpoint, InvalidEndpoint> {
    let endpoint: Endpoint = text.parse()?;
    if endpoint.user.is_some() { Err(InvalidEndpoint::Form) } else { Ok(endpoint) }
}

/// The error of an address of a writer.
pub(crate) fn not_of_writer(error: &InvalidEndpoint) -> InvalidValue {
    InvalidValue::new("is not an address of writers", error.to_string())
}
