//! The last writers of a lane.

use crate::records::{push_text, shortened, take_text};

/// Changes of the writer that a lane's file keeps.
pub(crate) const WRITERS_MAX: u64 = 64;
/// Bytes of a writer's name that are kept.
pub(crate) const WRITER_BYTES_MAX: usize = 200;

/// A change of a lane's writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WriterRecord {
    /// The first position of its first batch.
    pub(crate) first: u64,
    /// `None`: from then on the sink writes to the store without one.
    pub(crate) writer: Option<String>,
}

impl WriterRecord {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = self.first.to_le_bytes().to_vec();
        push_text(&mut bytes, shortened(self.writer.as_deref().unwrap_or_default(), WRITER_BYTES_MAX));
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (first, bytes) = bytes.split_first_chunk()?;
        let (writer, _) = take_text(bytes)?;
        let writer = Some(writer).filter(|writer| !writer.is_empty()).map(Into::into);
        Some(Self { first: u64::from_le_bytes(*first), writer })
    }
}
