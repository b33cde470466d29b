//! Tests against the pages.

mod transforms;
