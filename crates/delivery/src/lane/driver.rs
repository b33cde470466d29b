//! The loop of a lane: it reads the log, and has its session write what is due. The core decides, the session executes.

use ::objects::ObjectSink;
use aggregation::Halt;

use crate::lane::core::{NextStep, when_caught_up};
use crate::lane::session::Session;
use crate::lane::{Lane, LaneExit};
use crate::log_cursor::{BatchReader, FillResult};

impl Lane {
    /// Delivers until the lane has to stop, and catches up before if it has to.
    pub(super) async fn deliver(&mut self) -> Result<(), LaneExit> {
        match ObjectSink::of(&self.sink).cloned() {
            Some(store) => {
                let session = self.open_objects(store).await?;
                self.drive(session).await
            }
            None => {
                let session = self.open_batches().await?;
                self.drive(session).await
            }
        }
    }

    async fn drive(&mut self, mut session: impl Session) -> Result<(), LaneExit> {
        while *self.halt.borrow() != Halt::Now {
            let Some(fill) = self.read_on(&mut session).await? else { continue };
            if !session.write_due(self, fill).await? {
                continue;
            }
            match fill {
                FillResult::Full => {}
                FillResult::Pause | FillResult::Midway => tokio::task::yield_now().await,
                FillResult::CaughtUp => match self.next_step(session.reader()) {
                    NextStep::End => return Ok(()),
                    NextStep::ReadOn => {}
                    NextStep::Idle => session.idle(self).await?,
                },
            }
        }
        Ok(())
    }

    fn next_step(&self, reader: &BatchReader) -> NextStep {
        when_caught_up(*self.halt.borrow(), reader.has_ended(), || self.dead.has_deferred(self.name.shard))
    }
}
