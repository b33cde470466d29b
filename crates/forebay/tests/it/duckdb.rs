//! Tables of Parquet as DuckDB reads them, which is independent of Forebay.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// Reads `[files, query]`, and writes the result of the query, a JSON object a row.
const SCRIPT: &str = "
import duckdb, json, sys
files, query = json.load(sys.stdin)
events = duckdb.read_parquet(files)
quoted = ','.join(\"'\" + file + \"'\" for file in files)
found = duckdb.sql(query.replace('FILES', '[' + quoted + ']'))
for row in found.fetchall():
    print(json.dumps(dict(zip(found.columns, row))))
";

/// The folder that `cargo xtask services` installs it in.
fn packages() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("tools/duckdb")
}

/// Whether it is there; says so where it isn't.
pub(crate) fn is_there() -> bool {
    let is_there = packages().is_dir();
    if !is_there {
        testkit::skipped::report("DuckDB isn't there (cargo xtask services fetches it)");
    }
    is_there
}

/// The rows of a query of `events`, which is what the files hold, or of what it makes of their list `FILES`.
pub(crate) fn rows(files: &[PathBuf], query: &str) -> Vec<Value> {
    let mut python = Command::new("python3");
    python.args(["-c", SCRIPT]).env("PYTHONPATH", packages()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut python = python.spawn().unwrap();
    let input = serde_json::to_vec(&(files, query)).unwrap();
    python.stdin.take().unwrap().write_all(&input).unwrap();
    let output = python.wait_with_output().unwrap();
    assert!(output.status.success(), "DuckDB can't read {files:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
