//! The admin address of a configured server, as a client on the same machine reaches it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use config::Configuration;
use load::ServerUrl;

/// The admin address of `serve` or of a gateway.
pub(crate) fn of_server(configuration: Option<&Configuration>) -> ServerUrl {
    configuration.map_or_else(
        || target(config::ADMIN, false),
        |configuration| target(configuration.gateway.admin, configuration.admin.tls.is_some()),
    )
}

/// The address of a server that listens on `admin`. A certificate names hosts, as a rule, and no addresses.
pub(crate) fn target(admin: SocketAddr, has_tls: bool) -> ServerUrl {
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
