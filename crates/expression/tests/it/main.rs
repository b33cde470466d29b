//! Tests against the pages.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is the test")]

mod expressions;
