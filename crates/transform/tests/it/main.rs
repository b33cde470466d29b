//! Tests against the pages.

mod fuzz;
mod transforms;
