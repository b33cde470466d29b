//! Reads dead letters from disk, on blocking threads and few at a time.

use std::sync::Arc;

use dead_letters::{DeadError, DeadFilter, DeadGroups, DeadLetterService, DeadList, PageRequest, Selection};
use hyper::StatusCode;
use tokio::sync::Semaphore;

use super::response::{AdminResponse, problem, stopping};

/// Passes through the journals of dead letters at the same time. More wait.
const READS_MAX: usize = 2;

/// The dead letters of all sinks, for requests. Cheap to clone.
#[derive(Clone)]
pub(crate) struct DeadReads {
    letters: DeadLetterService,
    places: Arc<Semaphore>,
}

impl DeadReads {
    pub(crate) fn new(letters: DeadLetterService) -> Self {
        Self { letters, places: Arc::new(Semaphore::new(READS_MAX)) }
    }

    /// The service, for actions.
    pub(super) const fn letters(&self) -> &DeadLetterService {
        &self.letters
    }

    pub(super) async fn list(&self, filter: DeadFilter, page: PageRequest) -> Result<DeadList, AdminResponse> {
        self.read(move |letters| letters.list(&filter, &page)).await
    }

    pub(super) async fn groups(&self, filter: DeadFilter) -> Result<DeadGroups, AdminResponse> {
        self.read(move |letters| letters.groups(&filter)).await
    }

    pub(super) async fn select(&self, filter: DeadFilter, limit: u64) -> Result<Selection, AdminResponse> {
        self.read(move |letters| letters.select(&filter, limit)).await
    }

    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&DeadLetterService) -> Result<T, DeadError> + Send + 'static,
    ) -> Result<T, AdminResponse> {
        let place = self.places.clone().acquire_owned().await.map_err(|_| stopping())?;
        let letters = self.letters.clone();
        // The place is free when the pass ends, also if its client is gone.
        let reading = tokio::task::spawn_blocking(move || (read(&letters), drop(place)).0);
        match reading.await {
            Ok(read) => read.map_err(|error| problem(StatusCode::INTERNAL_SERVER_ERROR, "journal", error.to_string())),
            Err(error) => Err(problem(StatusCode::INTERNAL_SERVER_ERROR, "bug", error.to_string())),
        }
    }
}
