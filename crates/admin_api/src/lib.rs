//! The admin API: paths, queries and JSON, which servers and commands share.
#![allow(missing_docs, reason = "most fields have the names of the JSON that the pages show")]

pub mod actions;
pub mod dead;
pub mod debug;
pub mod health;
pub mod history;
pub mod jobs;
pub mod log;
pub mod overview;
pub mod paths;
pub mod peers;
pub mod query;
pub mod reload;
pub mod route;
pub mod session;
pub mod status;
pub mod story;
pub mod upstream;
