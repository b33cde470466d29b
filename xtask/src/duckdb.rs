//! DuckDB, by which tests read tables of Parquet: a reader that isn't ours.

use crate::pip_package::PipPackage;

/// Its version changes only here. `PYTHONPATH` of the tests has its folder.
pub(crate) const PACKAGE: PipPackage =
    PipPackage { name: "duckdb", requirement: "duckdb==2.0.0", options: &["--no-deps"] };
