//! Sinks in containers of the server.

use std::fmt::Display;
use std::net::SocketAddr;
use std::time::Duration;

use objects::ObjectFormat;
use sink::Sink;
use sink_swift::{Auth, SwiftConfig};
use testkit::swift::{KEY, USER};

/// `TempAuth` at this address.
pub(crate) fn tempauth(place: impl Display, user: &str) -> Auth {
    let url = format!("http://{place}/auth/v1.0").parse().unwrap();
    Auth::TempAuth { url, user: user.to_owned(), key: KEY.into() }
}

pub(crate) fn config(auth: Auth, container: &str, rules: ObjectFormat) -> SwiftConfig {
    SwiftConfig { auth, container: container.parse().unwrap(), rules, ca: None, timeout: Duration::from_secs(20) }
}

/// A sink on a container of the server at this address.
pub(crate) fn sink_of(place: SocketAddr, container: &str, rules: ObjectFormat) -> Sink {
    sink_swift::sink(config(tempauth(place, USER), container, rules))
}
