//! The file that a command reads.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Opens the file, or the standard input for `-`.
pub fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    Ok(if path == Path::new("-") { Box::new(io::stdin()) } else { Box::new(File::open(path)?) })
}
