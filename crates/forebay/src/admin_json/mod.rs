//! The JSON of the admin API, which the server writes and commands read.

pub(crate) mod dead;
pub(crate) mod reload;
pub(crate) mod route;
pub(crate) mod status;
pub(crate) mod upstream;
