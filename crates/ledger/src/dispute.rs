//! Disputes between a lane's store and its journal.

/// In what a lane's store and journal disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dispute {
    /// The store holds the claim of another process.
    Claimed,
    /// The store has positions that the journal has never had.
    StoreAhead,
    /// The store has lost events that the journal doesn't have any longer.
    Lost,
}

/// The operator's permission to accept what the store has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accept {
    /// The lane resends the events after its saved cursor, also those that the store may have.
    pub resend: bool,
}
