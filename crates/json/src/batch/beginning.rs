//! The first bytes of a body. A byte order mark is skipped. A body in another format is rejected as a whole, before
//! bytes of it that happen to be JSON become records.

use super::BatchError;
use crate::looks_like::{self, FORM_BYTES};
use crate::{BYTE_ORDER_MARK, JsonError, JsonErrorKind};

/// Enough to recognise a mark, compressed bytes and other encodings.
const BYTES: usize = 4;

/// The first bytes of a body, from chunks that were too short to recognise its format.
#[derive(Debug, Default)]
pub(super) struct Beginning {
    held: Vec<u8>,
}

impl Beginning {
    /// Recognises the format of a body by its first bytes: returns how many of them are skipped, or `None` if more are
    /// needed.
    ///
    /// # Errors
    /// The body is in another format.
    fn judge(bytes: &[u8], is_whole: bool) -> Result<Option<usize>, BatchError> {
        let enough = if bytes.starts_with(b"--") { FORM_BYTES } else { BYTES };
        if bytes.len() < enough && !is_whole {
            return Ok(None);
        }
        let format = match bytes.first() {
            // A form is one line: the line is rejected. Other texts may have single lines that aren't JSON.
            Some(b'-') => looks_like::format(bytes).map(|detail| (detail, JsonErrorKind::Syntax)),
            _ => looks_like::encoding(bytes).map(|detail| (detail, JsonErrorKind::Utf8)),
        };
        match format {
            Some((detail, kind)) => Err(BatchError::OtherFormat(JsonError::of_format(kind, detail))),
            None if bytes.starts_with(BYTE_ORDER_MARK) => Ok(Some(BYTE_ORDER_MARK.len())),
            None => Ok(Some(0)),
        }
    }

    /// Accepts the next chunk. Returns how many bytes are skipped as soon as that is known; then [`Self::into_bytes`]
    /// has all received bytes, or none if this was the first chunk.
    pub(super) fn push(&mut self, chunk: &[u8]) -> Result<Option<usize>, BatchError> {
        if self.held.is_empty()
            && let Some(passed) = Self::judge(chunk, false)?
        {
            return Ok(Some(passed));
        }
        self.held.extend_from_slice(chunk);
        Self::judge(&self.held, false)
    }

    /// The body has ended.
    pub(super) fn finish(&self) -> Result<usize, BatchError> {
        Ok(Self::judge(&self.held, true)?.unwrap_or(0))
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.held
    }
}
