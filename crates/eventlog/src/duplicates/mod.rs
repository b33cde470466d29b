//! Events that come again: ids that clients gave are remembered with a hash of the bytes that came with them, in memory
//! for quick answers, and in small files of their own for the time after a restart.

mod batch;
mod content;
mod earlier;
mod file;
mod given;
mod known;
mod meeting;
mod memory;
mod part;
mod recall;
mod trust;
mod window;

pub use batch::{Batch, Cause, Line, Own};
pub use content::ContentHash;
pub use earlier::Earlier;
pub(crate) use meeting::{Meeting, Met};
pub(crate) use memory::Memory;
pub use memory::{damaged_id_files, forget_lost_ids};
pub(crate) use trust::Trust;
pub(crate) use window::Place;
