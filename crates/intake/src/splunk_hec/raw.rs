//! Bodies of text: each line is an event.

use json::text;
use limits::EVENT_BYTES_MAX;

use crate::Stop;

/// Passes each line on as a JSON string. Bytes that aren't UTF-8 are replaced, as Splunk does: logs have some.
pub(super) fn walk(body: &[u8], each: &mut dyn FnMut(&str) -> Result<(), Stop>) -> Result<(), Stop> {
    for line in body.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if !line.trim_ascii().is_empty() {
            // The rest of a line that is too large isn't needed: it is rejected.
            let line = &line[..line.len().min(EVENT_BYTES_MAX + 1)];
            each(&text::string(&String::from_utf8_lossy(line)))?;
        }
    }
    Ok(())
}
