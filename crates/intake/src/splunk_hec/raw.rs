//! Bodies of text: each line is an event.

use limits::EVENT_BYTES_MAX;

use crate::{Stop, lossy};

/// Takes a line as a JSON string, or the beginning of one that is too large.
type Each<'e> = dyn FnMut(Result<&str, &[u8]>) -> Result<(), Stop> + 'e;

/// Passes each line on as a JSON string, or as its beginning if it is too large. Bytes that aren't UTF-8 are replaced.
pub(super) fn walk(body: &[u8], each: &mut Each<'_>) -> Result<(), Stop> {
    for line in body.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if !line.trim_ascii().is_empty() {
            let text = lossy::string(line);
            each(text.as_deref().ok_or(&line[..line.len().min(EVENT_BYTES_MAX)]))?;
        }
    }
    Ok(())
}
