//! The address of a port, and who can reach it.

use std::net::SocketAddr;

use access::{Demand, Scope, Scopes};
use settings::{Diagnostic, InvalidValue, Located, SettingsReader};
use text::OperatorCommand;

use crate::inputs::DEFAULT_IP;

/// Parses the address of a port.
pub(crate) fn address(text: &str) -> Result<SocketAddr, InvalidValue> {
    text.parse().map_err(|_| {
        InvalidValue::new("is not an address", "expected an IP address and a port")
            .help("for example 127.0.0.1:8080, or [::1]:8080; names like localhost are not looked up")
    })
}

/// The default of `listen` that the image sets instead of loopback.
pub(crate) fn default_of_image(reader: &mut SettingsReader<'_>, default: SocketAddr) -> Option<Located<SocketAddr>> {
    let wrong = |_| InvalidValue::new("is not an IP address", "expected an IP address without a port");
    reader.text_of_variable(DEFAULT_IP, |text| Ok(SocketAddr::new(text.parse().map_err(wrong)?, default.port())))
}

/// Which requests need a token on a port at `address`. With `allow_anonymous` none does.
pub(crate) fn demand(allow_anonymous: bool, address: SocketAddr) -> Demand {
    match (allow_anonymous, is_loopback(address)) {
        (true, _) => Demand::Never,
        (false, true) => Demand::WithTokens,
        (false, false) => Demand::Always,
    }
}

/// Whether only this machine can reach the address.
pub(crate) fn is_loopback(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

/// The port of a role, for messages about it.
pub(crate) struct Port {
    /// The table of its settings.
    pub(crate) table: &'static str,
    /// The action that any client could do.
    pub(crate) all: &'static str,
    /// The scope of the tokens that it asks for.
    pub(crate) scope: Scope,
    /// Whether the image sets the address.
    pub(crate) is_default_of_image: bool,
    /// Whether it has an intake with signatures. Such requests need no token, and all others are rejected until a token exists.
    pub(crate) has_signed_intake: bool,
}

impl Port {
    /// Reports an address that other machines reach and that needs no token, unless `allow_anonymous` is set.
    pub(crate) fn check_reach(
        &self,
        reader: &mut SettingsReader<'_>,
        (listen, admin): (Option<&Located<SocketAddr>>, Option<&Located<SocketAddr>>),
        allow_anonymous: bool,
        scopes: Scopes,
    ) {
        let Self { table, all, scope, is_default_of_image, has_signed_intake } = self;
        let is_closed = scopes.has(*scope) || *has_signed_intake;
        let mut refuse = |found: &Located<SocketAddr>, title: String, help: String| {
            reader.push(Diagnostic::new(title, found.span.clone(), "not a loopback address").help(help));
        };
        if let Some(found) = listen.filter(|found| !is_loopback(found.value) && !allow_anonymous && !is_closed) {
            let title = format!("conflict: `{table}.listen` would let any client {all} without a token");
            let command = OperatorCommand::TokenNew(scope.as_str());
            let help = if *is_default_of_image {
                format!(
                    "create a token in the data directory ({command}, with the volume of this container), or accept requests without \
                     tokens: {}=true",
                    settings::variable_name([table, "allow_anonymous"])
                )
            } else {
                format!(
                    "create a token ({command}), or set `allow_anonymous = true` in [{table}] to allow this, or listen on 127.0.0.1 or [::1]"
                )
            };
            refuse(found, title, help);
        }
        if let Some(found) = admin.filter(|found| !is_loopback(found.value) && !scopes.has(Scope::Admin)) {
            let title = format!("conflict: `{table}.admin` would let any client read everything without a token");
            let command = OperatorCommand::TokenNew(Scope::Admin.as_str());
            let help = format!("create a token ({command}), or listen on 127.0.0.1 or [::1]");
            refuse(found, title, help);
        }
    }
}
