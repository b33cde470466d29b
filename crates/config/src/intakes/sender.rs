//! The URLs of an intake, and the lines for its senders.

use std::fmt::Write;
use std::net::SocketAddr;

use crate::intakes::IntakeConfig;

/// The lines of an intake in the summary of a configuration whose gateway listens at this address: its URLs, and the line for the sender's configuration.
pub(crate) fn lines(gateway: SocketAddr, has_tls: bool, name: &str, intake: &IntakeConfig) -> String {
    let own = intake.listen.map(|listen| url(listen, has_tls, ""));
    let on_gateway = url(gateway, has_tls, &intake.path);
    let urls: Vec<&str> = own.iter().map(String::as_str).chain([&*on_gateway]).collect();
    let mut text = format!("intake  {name}: {intake}, {}\n", urls.join(" and "));
    // A sender needs one of them. A separate port is there because it can't use a path.
    let best = urls.first().copied().unwrap_or_default();
    let _ = writeln!(text, "        sender: {}", intake.kind.sender.replace("{URL}", best));
    text
}

/// The URL of a path. An address of all interfaces is shown as `HOST`.
fn url(listen: SocketAddr, has_tls: bool, path: &str) -> String {
    let scheme = if has_tls { "https" } else { "http" };
    if listen.ip().is_unspecified() {
        return format!("{scheme}://HOST:{}{path}", listen.port());
    }
    format!("{scheme}://{listen}{path}")
}
