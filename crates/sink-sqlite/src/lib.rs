//! SQLite, the default store: a table of a file that others may read while Forebay runs.
//!
//! A transactional store: a lane's cursor is set in the transaction of its rows. The connection belongs to one thread,
//! since SQLite blocks; the lanes of a sink share it, each with at most one waiting call. Reads have separate threads
//! and connections.

mod clock_guard;
mod config;
mod error;
mod fault;
mod file_identity;
mod lookup;
mod mark;
mod page;
mod reader;
mod retention;
mod rows;
mod schema;
mod settings;
mod store;
mod transaction;
mod writer;

pub use config::SqliteConfig;
pub use settings::KIND;
pub use store::Sqlite;
