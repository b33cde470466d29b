//! Bytes that were received and couldn't be parsed yet.

/// A buffer up to this isn't worth the move into a smaller one.
const SMALL_BYTES: usize = 4096;

/// Bytes, of which those in front may have been consumed.
#[derive(Debug, Default)]
pub(crate) struct ReadBuffer {
    bytes: Vec<u8>,
    taken: usize,
}

impl ReadBuffer {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[self.taken..]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes().is_empty()
    }

    /// Adds bytes. If that needs a buffer, it comes from `spare`.
    pub(crate) fn add(&mut self, bytes: &[u8], spare: impl FnOnce() -> Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        if self.bytes.capacity() == 0 {
            self.bytes = spare();
        }
        // Usually nothing is left, or part of a head: otherwise the bytes of a busy connection would accumulate.
        self.bytes.drain(..std::mem::take(&mut self.taken));
        self.bytes.extend_from_slice(bytes);
    }

    /// Removes bytes from the front, and returns the buffer with the last of them.
    pub(crate) fn take(&mut self, bytes: usize) -> Option<Vec<u8>> {
        debug_assert!(bytes <= self.bytes().len(), "consumed bytes are in the buffer");
        self.taken += bytes;
        if !self.is_empty() {
            self.shrink();
            return None;
        }
        if self.bytes.capacity() == 0 {
            return None;
        }
        self.taken = 0;
        let mut buffer = std::mem::take(&mut self.bytes);
        buffer.clear();
        Some(buffer)
    }

    /// Many connections may wait for the rest of a request: a small part must not keep a large buffer.
    fn shrink(&mut self) {
        if self.bytes.capacity() > SMALL_BYTES && self.bytes().len() < self.bytes.capacity() / 4 {
            self.bytes = self.bytes().to_vec();
            self.taken = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consumed_bytes_are_removed_from_the_buffer() {
        let mut held = ReadBuffer::default();
        held.add(b"12345", Vec::new);
        for _ in 0..10_000 {
            assert!(held.take(4).is_none());
            held.add(b"2345", || panic!("it has a buffer"));
            assert_eq!(held.bytes(), b"52345");
            assert!(held.take(1).is_none());
            held.add(b"5", Vec::new);
        }
        assert!(held.bytes.capacity() < 64, "{}", held.bytes.capacity());
    }

    #[test]
    fn small_rest_keeps_no_large_buffer() {
        let mut held = ReadBuffer::default();
        held.add(&[7; 100_000], Vec::new);
        assert!(held.take(99_999).is_none());
        assert_eq!((held.bytes(), held.bytes.capacity()), (&[7_u8][..], 1));
    }

    #[test]
    fn buffer_is_allocated_on_demand_and_freed() {
        let mut held = ReadBuffer::default();
        held.add(b"", || panic!("nothing needs no buffer"));
        assert!(held.take(0).is_none());
        held.add(b"12", || Vec::with_capacity(100));
        assert!(held.take(1).is_none());
        let buffer = held.take(1).unwrap();
        assert!(buffer.is_empty() && buffer.capacity() >= 100 && held.is_empty());
    }
}
