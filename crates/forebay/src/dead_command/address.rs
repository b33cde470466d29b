//! The admin address of the server that has a data directory: what its configuration says, as a client on the same machine
//! reaches it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use load::Target;

use super::DeadCommandError;
use crate::cli::DeadAt;
use crate::config::{self, Environment, Flags};

/// Reads it from the configuration that is named, and else from the environment, as the server does.
///
/// # Errors
/// The configuration that is named can't be read, or is wrong.
pub(super) fn find(at: &DeadAt) -> Result<Target, DeadCommandError> {
    let loaded = config::load(at.config.as_deref(), &Environment::of_process(), &Flags::default(), &at.data.directory);
    match loaded {
        Ok((configuration, _)) => Ok(target(configuration.gateway.admin, configuration.admin.tls.is_some())),
        Err(error) if at.config.is_some() => Err(DeadCommandError::Configuration(error)),
        // Variables may be meant for something else: nobody has named a configuration.
        Err(_) => Ok(target(config::ADMIN, false)),
    }
}

/// Where a server is asked that listens on `admin`. A certificate names hosts, as a rule, and no addresses.
fn target(admin: SocketAddr, has_tls: bool) -> Target {
    let ip = match admin.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    let text = match (has_tls, ip.is_loopback()) {
        (true, true) => format!("https://localhost:{}", admin.port()),
        (true, false) => format!("https://{}", SocketAddr::new(ip, admin.port())),
        (false, _) => format!("http://{}", SocketAddr::new(ip, admin.port())),
    };
    text.parse().expect("it is written as addresses are")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_on_the_same_machine_reaches_it() {
        for (admin, has_tls, expected) in [
            ("127.0.0.1:9000", false, "http://127.0.0.1:9000"),
            ("0.0.0.0:9001", false, "http://127.0.0.1:9001"),
            ("[::]:9001", false, "http://[::1]:9001"),
            ("10.0.0.1:9001", false, "http://10.0.0.1:9001"),
            ("0.0.0.0:9001", true, "https://localhost:9001"),
            ("10.0.0.1:9001", true, "https://10.0.0.1:9001"),
        ] {
            assert_eq!(target(admin.parse().unwrap(), has_tls).to_string(), expected);
        }
    }
}
