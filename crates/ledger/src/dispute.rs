//! Disputes between a lane's store and its journal.

/// The disagreement of a lane's store and its journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dispute {
    /// The store holds the claim of another process.
    Claimed,
    /// The store has positions that the journal has never had.
    StoreAhead,
    /// The store has lost events that are no longer in the journal.
    Lost,
}

/// The operator's permission to accept what the store has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accept {
    /// The lane resends the events after its saved cursor, also those that the store may have.
    pub resend: bool,
}
