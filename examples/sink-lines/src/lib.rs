//! An example of a store: it appends events to a file, as lines of JSON. `docs/internals/adding-a-store.md` shows how it was written.
//!
//! Transactional: the line after a batch's events has the lane's cursor. Events without such a line after them aren't stored.

mod config;
mod file;
mod settings;
mod store;

pub use config::LinesConfig;
pub use settings::KIND;
