//! The dedup window: it recognises duplicates by their idempotency keys. The ids of clients are indexed with a hash of
//! the bytes that came with them: in memory for quick lookups, and in separate small files for the time after a
//! restart.

mod append_batch;
mod content_hash;
mod entry;
mod id_file;
mod index;
mod keyed_ids;
mod lookup;
mod original;
mod restore;
mod validity;
mod window;
mod window_shard;

pub use append_batch::{AppendBatch, AppendOptions, DedupResult, LineRejection, SourceLine};
pub use content_hash::ContentHash;
pub(crate) use entry::PackedPosition;
pub(crate) use index::DedupIndex;
pub use index::{damaged_id_files, forget_lost_ids};
pub(crate) use lookup::{BatchConflict, Conflict, DedupLookup};
pub use original::Original;
pub(crate) use validity::Validity;
