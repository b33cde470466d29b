//! Retention: what is saved, what must stay in the journal, and how large the backlog may be.

mod backlog_limit;
mod checkpointer;
mod failover_window;

pub(crate) use checkpointer::Checkpointer;
