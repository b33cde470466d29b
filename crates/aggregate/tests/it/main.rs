//! Tests against the pages and against SQL.

mod aggregate_sql;
mod aggregates;
