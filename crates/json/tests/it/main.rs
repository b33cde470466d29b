//! Tests of the whole crate against data and pages.

mod json_parsing;
