//! The admin address of a configured server, as a client on the same machine reaches it. Nothing else of the configuration is read: a mistake, or a
//! secret that this user can't read, must not keep a command from a running server.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use anyhow::anyhow;
use config::Role;
use config::configuration_file::ConfigurationFile;
use config::{ADMIN, WRITER_ADMIN};
use load::ServerUrl;
use settings::Environment;

use crate::flags::AdminAddress;

const KEY: &str = "admin";
/// The table, and the start of the variables, of the admin port's TLS. A writer's admin port has none.
const TLS: (&str, &str) = ("tls", "FOREBAY_ADMIN_TLS_CERTIFICATE");

/// The address that the flags name; else that of a server of the role.
///
/// # Errors
/// Those of [`find`], with advice.
pub(crate) fn of_flags(at: &AdminAddress, role: Role, environment: &Environment) -> anyhow::Result<ServerUrl> {
    match &at.admin {
        Some(address) => Ok(address.clone()),
        None => find(role, at.config.as_deref(), environment)
            .map_err(|reason| anyhow!("{reason}. Name the admin address of the running server with --admin.")),
    }
}

/// Finds the address in the environment, in the file, or by its default.
///
/// # Errors
/// The file can't be read, isn't TOML, or has no address there: the reason.
pub fn find(role: Role, file: Option<&Path>, environment: &Environment) -> Result<ServerUrl, String> {
    let (variable, default) = match role {
        Role::Writer => ("FOREBAY_WRITER_ADMIN", WRITER_ADMIN),
        Role::Serve | Role::Gateway => ("FOREBAY_GATEWAY_ADMIN", ADMIN),
    };
    let of_environment = |name: &str| environment.get(name).and_then(Result::ok).map(|value| value.text.into_owned());
    let file = file.map(ConfigurationFile::read).transpose()?.unwrap_or_default();
    let text = match of_environment(variable) {
        Some(text) => Some(text),
        None => file.text(role.table(), KEY, environment)?,
    };
    let address: SocketAddr = match text {
        Some(text) => text
            .parse()
            .map_err(|_| "the setting `admin` is not an IP address with a port, such as 127.0.0.1:9000".to_owned())?,
        None => default,
    };
    let has_tls = role != Role::Writer && (file.has(KEY, TLS.0) || of_environment(TLS.1).is_some());
    Ok(target(address, has_tls))
}

/// The address of a server that listens on `admin`. A certificate names hosts, as a rule, and no addresses.
pub fn target(admin: SocketAddr, has_tls: bool) -> ServerUrl {
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
    fn only_the_address_counts() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("forebay.toml");
        let found = |role, text: &str, variables: &[(&str, &str)]| {
            std::fs::write(&file, text).unwrap();
            let target = find(role, Some(&file), &variables.iter().copied().collect());
            target.map(|target| target.to_string())
        };
        let wrong = "[gateway]\nadmin = \"0.0.0.0:9100\"\nno_such = 1\n[sinks.x]\nkind = \"${UNSET}\"\n";
        let one = ("FOREBAY_GATEWAY_ADMIN", "127.0.0.1:7");
        for (role, text, variables, expected) in [
            (Role::Serve, wrong, &[][..], "http://127.0.0.1:9100"),
            (Role::Gateway, wrong, &[one], "http://127.0.0.1:7"),
            (Role::Gateway, "[gateway]\nadmin = \"${HOST}:9\"", &[("HOST", "10.0.0.2")], "http://10.0.0.2:9"),
            (Role::Gateway, "", &[], "http://127.0.0.1:9000"),
            (Role::Gateway, "[admin.tls]\ncertificate = \"c\"", &[], "https://localhost:9000"),
            (Role::Writer, "[writer]\nadmin = \"10.0.0.1:9\"", &[one], "http://10.0.0.1:9"),
            (Role::Writer, wrong, &[], "http://127.0.0.1:9001"),
        ] {
            assert_eq!(found(role, text, variables).as_deref(), Ok(expected), "{text}");
        }
        assert!(found(Role::Serve, "no toml", &[]).is_err());
        assert!(found(Role::Serve, "[gateway]\nadmin = \"x\"", &[]).unwrap_err().contains("not an IP address"));
    }

    #[test]
    fn client_on_the_same_machine_reaches_it() {
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
