//! Bodies in the raw format of snappy: one block, without frames.

use std::borrow::Cow;

use limits::BATCH_BYTES_MAX;

use crate::Problem;

/// How many bytes the body has after decompression, as it says.
pub(super) fn length(body: &[u8]) -> Option<usize> {
    snap::raw::decompress_len(body).ok()
}

/// The decompressed body.
pub(super) fn decompress(body: &[u8]) -> Result<Cow<'_, [u8]>, Problem> {
    let length = length(body).ok_or_else(invalid)?;
    if length > BATCH_BYTES_MAX {
        let detail = format!("the body has {length} bytes after decompression; at most {BATCH_BYTES_MAX} are allowed");
        return Err(Problem::too_large(detail));
    }
    snap::raw::Decoder::new().decompress_vec(body).map(Cow::Owned).map_err(|_| invalid())
}

fn invalid() -> Problem {
    Problem::invalid("the body is no snappy block: send protocol buffers with snappy, or JSON as application/json")
}
