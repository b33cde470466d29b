//! The address of a port, and what it says about who can reach it.

use std::net::SocketAddr;

use access::{Demand, Scope, Scopes};
use settings::{Diagnostic, InvalidValue, Located, SettingsReader};

/// Parses the address of a port.
pub(crate) fn address(text: &str) -> Result<SocketAddr, InvalidValue> {
    text.parse().map_err(|_| {
        InvalidValue::new("is not an address", "wanted an IP address and a port")
            .help("for example 127.0.0.1:8080, or [::1]:8080; names like localhost are not looked up")
    })
}

/// Which requests need a token on a port at `address`. An `open` port needs none.
pub(crate) fn demand(open: bool, address: SocketAddr) -> Demand {
    match (open, is_loopback(address)) {
        (true, _) => Demand::Never,
        (false, true) => Demand::WithTokens,
        (false, false) => Demand::Always,
    }
}

/// Whether only this machine can reach the address.
pub(crate) fn is_loopback(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

/// The port of a role, for what is said of it.
pub(crate) struct Port {
    /// The table of its settings.
    pub(crate) table: &'static str,
    /// What everybody could do.
    pub(crate) all: &'static str,
    /// The scope of the tokens that it asks for.
    pub(crate) scope: Scope,
    /// The flags of the command that makes such a token.
    pub(crate) flags: &'static str,
}

impl Port {
    /// Reports an address that other machines reach and that needs no token, unless that is meant.
    pub(crate) fn check_reach(
        &self,
        reader: &mut SettingsReader<'_>,
        (listen, admin): (Option<&Located<SocketAddr>>, Option<&Located<SocketAddr>>),
        open: bool,
        scopes: Scopes,
    ) {
        let Self { table, all, scope, flags } = self;
        let mut refuse = |found: &Located<SocketAddr>, title: String, help: String| {
            reader.push(Diagnostic::new(title, found.span.clone(), "not a loopback address").help(help));
        };
        if let Some(found) = listen.filter(|found| !is_loopback(found.value) && !open && !scopes.has(*scope)) {
            let title = format!("`{table}.listen` would let everybody {all} who reaches this machine");
            let help = format!(
                "make a token (forebay token new NAME --scope {scope}{flags}), or set `open = true` in [{table}] if that is meant, or \
                 listen on 127.0.0.1 or [::1]"
            );
            refuse(found, title, help);
        }
        if let Some(found) = admin.filter(|found| !is_loopback(found.value) && !scopes.has(Scope::Admin)) {
            let title = format!("`{table}.admin` would let everybody look in who reaches this machine");
            let help =
                format!("make a token (forebay token new NAME --scope admin{flags}), or listen on 127.0.0.1 or [::1]");
            refuse(found, title, help);
        }
    }
}
