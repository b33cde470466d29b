//! Tests against the pages and the official suite.

mod schema_suite;
mod schemas;
