//! Connections to a separate server: requests and subscriptions, losses and reconnections, a cluster, and logins.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by it")]

mod cluster;
mod fixture;
mod login;
mod losses;
mod operator;
mod requests;
mod subscriptions;
mod tls;
