//! What the gateway reads back, from whom: a sink, with what delivery knows of how far it is.

use std::sync::Arc;

use delivery::{LaneBoard, SinkSetup};
use event::read::{Query, ReadError, Reading, StoreReader};
use sink::Sink;

use crate::log;

/// A sink that can be read.
pub(crate) struct SinkReader {
    name: Arc<str>,
    sink: Sink,
    lanes: LaneBoard,
}

impl SinkReader {
    /// Those of the sinks that can be read.
    pub(crate) fn of_all(sinks: &[SinkSetup], lanes: &LaneBoard) -> Vec<Arc<Self>> {
        let reader = |setup: &SinkSetup| {
            Arc::new(Self { name: setup.name.clone(), sink: setup.sink.clone(), lanes: lanes.clone() })
        };
        sinks.iter().filter(|setup| setup.sink.can_read()).map(reader).collect()
    }
}

impl StoreReader for SinkReader {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn read(&self, query: Query) -> Reading<'_> {
        Box::pin(async move {
            let answer = self.sink.read(query).await;
            // The client is told that the store can't be read; why is the operator's.
            if let Err(ReadError::Unavailable(reason)) = &answer {
                log::warning(format_args!("sink {} can't be read back: {reason}", self.name));
            }
            answer
        })
    }

    fn settled_up_to(&self, shard: u16) -> u64 {
        let lanes = self.lanes.lanes();
        let lane = lanes.iter().find(|status| status.lane().shard == shard && status.lane().sink == self.name);
        lane.map_or(0, |status| status.cursor())
    }
}
