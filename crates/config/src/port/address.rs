//! The address of a port, and what it says about who can reach it.

use std::net::SocketAddr;

use access::Demand;
use settings::InvalidValue;

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
