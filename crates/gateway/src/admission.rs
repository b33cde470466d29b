//! How much each shard has to do, and how much the process takes on: bytes that have arrived and are not durable yet.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::code::Code;
use crate::problem::{Problem, Refused};

/// What one shard has to do.
#[derive(Debug, Default)]
pub(crate) struct Load {
    bytes: AtomicUsize,
    connections: AtomicUsize,
}

/// The loads of all shards, and the limit for them together.
#[derive(Debug)]
pub(crate) struct Admission {
    loads: Box<[Load]>,
    bytes_max: usize,
}

impl Admission {
    pub(crate) fn new(shards: usize, bytes_max: usize) -> Self {
        Self { loads: (0..shards).map(|_| Load::default()).collect(), bytes_max }
    }

    /// The shard that has the least to do: in bytes, then in connections.
    pub(crate) fn least_loaded(&self) -> usize {
        let load = |shard: &usize| {
            let Load { bytes, connections } = &self.loads[*shard];
            (bytes.load(Ordering::Relaxed), connections.load(Ordering::Relaxed))
        };
        (0..self.loads.len()).min_by_key(load).unwrap_or_default()
    }

    pub(crate) fn connection_opened(&self, shard: usize) {
        self.loads[shard].connections.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn connection_closed(&self, shard: usize) {
        let before = self.loads[shard].connections.fetch_sub(1, Ordering::Relaxed);
        debug_assert!(before > 0, "a connection closes once");
    }

    pub(crate) fn connections(&self) -> usize {
        self.loads.iter().map(|load| load.connections.load(Ordering::Relaxed)).sum()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.loads.iter().map(|load| load.bytes.load(Ordering::Relaxed)).sum()
    }

    /// A permit for no bytes yet.
    pub(crate) const fn permit(&self, shard: usize) -> Permit<'_> {
        Permit { admission: self, shard, bytes: 0 }
    }
}

/// The bytes of one request, counted from their arrival until this is dropped.
#[derive(Debug)]
pub(crate) struct Permit<'a> {
    admission: &'a Admission,
    shard: usize,
    bytes: usize,
}

impl Permit<'_> {
    /// Counts bytes that have arrived. They are counted before they are compared, so that shards that ask at one time
    /// may refuse too much but never take too much.
    ///
    /// # Errors
    /// They are too many for the process.
    pub(crate) fn admit(&mut self, bytes: usize) -> Result<(), Refused> {
        self.admission.loads[self.shard].bytes.fetch_add(bytes, Ordering::Relaxed);
        self.bytes += bytes;
        if self.admission.bytes() <= self.admission.bytes_max {
            return Ok(());
        }
        Err(Problem::boxed(Code::Overload, "too many bytes wait to become durable; send the request again later"))
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        let before = self.admission.loads[self.shard].bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        debug_assert!(before >= self.bytes, "what is given back was taken");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_holds_for_all_shards_together() {
        let admission = Admission::new(2, 10);
        let (mut one, mut other) = (admission.permit(0), admission.permit(1));
        assert!(one.admit(6).is_ok() && other.admit(4).is_ok());
        assert_eq!(other.admit(1).unwrap_err().code, Code::Overload);
        drop(other);
        assert_eq!(admission.bytes(), 6);
        assert!(admission.permit(1).admit(4).is_ok());
    }

    #[test]
    fn sockets_go_to_the_fewest_bytes_then_connections() {
        let admission = Admission::new(2, 10);
        admission.connection_opened(0);
        assert_eq!(admission.least_loaded(), 1);
        let mut permit = admission.permit(1);
        assert!(permit.admit(1).is_ok());
        assert_eq!(admission.least_loaded(), 0);
    }
}
