//! Retention: what is saved, what must stay in the journal, and how much of it may wait.

mod backlog_limit;
mod checkpointer;
mod failover_window;

pub(crate) use checkpointer::Checkpointer;
