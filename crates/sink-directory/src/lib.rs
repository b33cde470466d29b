//! A directory as a store of objects: each is a file, with its description next to it. The directory is never listed.
//!
//! Writes to the disk may take long, so they run on a thread of tokio's pool. One object of a directory is written at a
//! time, so a write whose caller has left is over before the next begins. Lanes wait for each other, and a lock keeps
//! out other drivers and processes.

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
