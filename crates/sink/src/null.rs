//! A sink that accepts everything and stores nothing.

use std::fmt;

use async_trait::async_trait;

use crate::{Batch, Destination, Sink, SinkError, SinkKind, Store, StoreConfig, WriteOutcome};

/// Accepts everything and stores nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Null;

/// Sinks of kind `null`.
pub static NULL: SinkKind = SinkKind::new("null", |_, _, _| Some(Box::new(Null)));

impl StoreConfig for Null {
    fn kind(&self) -> &'static SinkKind {
        &NULL
    }

    fn build(&self) -> Sink {
        Sink::new(*self)
    }

    fn destination(&self) -> Option<Destination> {
        None
    }
}

impl fmt::Display for Null {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NULL.name)
    }
}

#[async_trait]
impl Store for Null {
    async fn write(&self, _: &Batch) -> Result<WriteOutcome, SinkError> {
        Ok(WriteOutcome::Committed)
    }
}

#[cfg(test)]
mod tests {
    use event::Lane;

    use super::*;
    use crate::{Cursor, Sink};

    #[test]
    fn null_accepts_everything() {
        fn send<T: Send>(value: T) -> T {
            value
        }
        let lane = Lane { origin: event::Origin([1; 16]), shard: 0, sink: "null".into() };
        let sink = Sink::new(Null);
        let batch = Batch::new(lane.clone(), 1);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        assert_eq!(runtime.block_on(send(sink.connect())), Ok(()));
        assert_eq!(runtime.block_on(send(sink.write(&batch))), Ok(WriteOutcome::Committed));
        assert_eq!(runtime.block_on(send(sink.cursor(&lane))), Ok(Cursor::Delivery));
        assert_eq!(runtime.block_on(send(sink.close())), Ok(()));
        assert!(!sink.capabilities().fenced);
    }
}
