//! A sink that accepts everything and stores nothing.

use event::read::{Page, Query, ReadError};

use crate::{Batch, Capabilities, Report, SinkError, Store};

/// Accepts everything and stores nothing.
#[derive(Clone, Copy, Debug)]
pub struct Null;

impl Store for Null {
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    async fn write(&self, _: &Batch) -> Result<Report, SinkError> {
        Ok(Report::Stored)
    }

    async fn read(&self, _: Query) -> Result<Page, ReadError> {
        Err(ReadError::Unavailable("a sink that keeps nothing can't be read".into()))
    }
}

#[cfg(test)]
mod tests {
    use event::Lane;

    use super::*;
    use crate::{Cursor, Sink};

    #[test]
    fn futures_move_between_threads_and_null_takes_everything() {
        fn send<T: Send>(value: T) -> T {
            value
        }
        let lane = Lane { origin: event::Origin([1; 16]), shard: 0, sink: "null".into() };
        let sink = Sink::new(Null);
        let batch = Batch::new(lane.clone(), 1);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        assert_eq!(runtime.block_on(send(sink.connect())), Ok(()));
        assert_eq!(runtime.block_on(send(sink.write(&batch))), Ok(Report::Stored));
        assert_eq!(runtime.block_on(send(sink.cursor(&lane))), Ok(Cursor::Delivery));
        assert_eq!(runtime.block_on(send(sink.close())), Ok(()));
        assert!(!sink.capabilities().fenced);
    }
}
