//! The settings of `[writer]`.

use settings::{ADDRESS, Setting, Unset};

use crate::port::tokens;
use crate::{registration, stopping};

/// Those apart from tables.
pub(crate) const SETTINGS: &[Setting] = &[
    Setting::new("listen", ADDRESS, "the address that gateways use, also `--listen ADDR`").or(Unset::Text("127.0.0.1:8081")),
    Setting::new(
        "admin",
        ADDRESS,
        "the address of `/metrics`, `/healthz` and `/readyz`, also `--admin ADDR`. An address that isn't loopback needs a token with the scope \
         `admin`",
    )
    .or(Unset::Text("127.0.0.1:9001")),
    ALLOW_ANONYMOUS,
    stopping::DELAY_OF_WRITER,
    tokens::TOKEN_FILE,
    registration::ADVERTISED,
    registration::ADVERTISED_ADMIN,
];
/// Whether gateways need a token.
pub(crate) const ALLOW_ANONYMOUS: Setting = Setting::flag(
    "allow_anonymous",
    "`true` lets every gateway that reaches the port use it. Without it an address that isn't loopback needs a token with the scope `deliver`",
);
