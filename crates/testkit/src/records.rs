//! Real records that some tests use. They are not part of the sources: a variable names their folder.

use std::path::{Path, PathBuf};

use crate::skipped;

/// The environment variable with the path of the folder.
pub const FOLDER: &str = "FOREBAY_TEST_RECORDS";

/// A file or folder of the records. Without it the test is reported as skipped.
pub fn records(name: &str) -> Option<PathBuf> {
    let found = std::env::var_os(FOLDER).map(|folder| Path::new(&folder).join(name)).filter(|path| path.exists());
    if found.is_none() {
        skipped::report(&format!("{FOLDER} names no folder with {name}"));
    }
    found
}
