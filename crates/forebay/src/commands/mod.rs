//! The commands but for those of roles: each runs and ends.

mod admin_client;
pub(crate) mod bench;
pub(crate) mod check;
pub(crate) mod dead;
pub(crate) mod drain;
mod figures;
pub(crate) mod generated_help;
pub(crate) mod health;
mod input;
mod interrupt;
pub(crate) mod journal;
pub(crate) mod load;
mod output;
mod progress;
pub(crate) mod reload;
pub(crate) mod route;
pub(crate) mod schema;
pub(crate) mod status;
mod table;
pub(crate) mod test;
pub(crate) mod token;
pub(crate) mod try_event;
