//! Which store a sink of a writer is bound to: the first one that its writers have named. The ledger keeps its mark, so that the next start
//! takes no other one, whichever writer answers first.

use crate::lane::Lane;

impl Lane {
    /// Makes durable which store the sink is bound to, before anything is written to it.
    pub(crate) async fn note_store(&self) {
        let (mark, sink) = (self.sink.bound_to(), &self.name.sink);
        if mark.is_none() || self.ledger.mark(sink) == mark {
            return;
        }
        let change = self.ledger.with_sink(sink, |book| book.mark = mark);
        let saved = self.ledger.saved_with(change);
        self.until_saved(saved, "the ledger can't be saved with the mark of its store").await;
    }
}
