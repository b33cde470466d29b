//! The store: each call locks the file and reads the new lines.

use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use event::Lane;
use sink::{Batch, Capabilities, Claim, Held, SinkError, Store, Takeover, WriteOutcome};

use crate::config::LinesConfig;
use crate::file::Known;

/// The store. It opens the file for each call.
#[derive(Clone, Debug)]
pub(crate) struct Lines {
    config: LinesConfig,
    known: Arc<Mutex<Known>>,
}

impl Lines {
    /// A store that has opened nothing yet.
    pub(crate) fn new(config: LinesConfig) -> Self {
        Self { config, known: Arc::default() }
    }

    /// Runs `work` on the locked file, on a thread that may block.
    async fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Known, &mut File) -> io::Result<T> + Send + 'static,
    ) -> Result<T, SinkError> {
        let Self { config, known } = self.clone();
        let blocking = tokio::task::spawn_blocking(move || {
            let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
            let mut file = known.open(&config.path)?;
            work(&mut known, &mut file)
        });
        let reason = |error| format!("{}: {error}", self.config.path.display()).into();
        blocking.await.map_err(io::Error::other).flatten().map_err(|error| SinkError::Unavailable(reason(error)))
    }
}

#[async_trait]
impl Store for Lines {
    fn capabilities(&self) -> Capabilities {
        Capabilities { fenced: true, on_this_disk: true, ..Capabilities::default() }
    }

    async fn held(&self, lane: &Lane) -> Result<Option<Held>, SinkError> {
        let lane = lane.clone();
        self.call(move |known, _| Ok(Some(known.held(&lane)))).await
    }

    async fn claim(&self, lane: &Lane, claim: Claim, takeover: &Takeover) -> Result<Option<Held>, SinkError> {
        let (lane, takeover) = (lane.clone(), takeover.clone());
        self.call(move |known, file| known.claim(file, &lane, claim, &takeover).map(Some)).await
    }

    async fn write(&self, batch: &Batch) -> Result<WriteOutcome, SinkError> {
        let batch = batch.clone();
        self.call(move |known, file| known.write(file, &batch)).await
    }
}
