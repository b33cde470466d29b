//! A directory as a store of objects: each is a file, beside it its description. It is never listed.
//!
//! What writes to the disk may take long, so it has a thread of tokio's. One object of a directory is written at a
//! time, so that a write whose caller has left is over before the next begins: lanes wait for their turn, and other
//! drivers and processes are kept out by a lock.

mod config;
mod directory;
mod error;
mod exchange;
mod files;
mod mark;
mod put;
mod read;
mod settings;
mod store;

pub use config::DirectoryConfig;
pub use directory::Directory;
pub use files::{Files, NewFile, OsFiles};
pub use settings::KIND;
pub use store::sink;
