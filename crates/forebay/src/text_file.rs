//! Text files that people write. Some editors put a byte order mark at the front of a file: it is not part of the text.

use std::io;
use std::path::Path;

use crate::regular_file;

const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Reads a file.
///
/// # Errors
/// Those of [`regular_file::read`], and `InvalidData` if the file is not UTF-8.
pub(crate) fn read(path: &Path) -> io::Result<String> {
    let text = String::from_utf8(regular_file::read(path)?);
    text.map(without_mark).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// The bytes of a file without the mark.
pub(crate) fn content(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(BYTE_ORDER_MARK.as_bytes()).unwrap_or(bytes)
}

fn without_mark(mut text: String) -> String {
    if text.starts_with(BYTE_ORDER_MARK) {
        text.drain(..BYTE_ORDER_MARK.len());
    }
    text
}
