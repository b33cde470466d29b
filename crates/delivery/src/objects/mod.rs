//! Delivery to stores of objects. What decides stands here, whatever the store: which events an object holds, its name,
//! and that a retry writes the same bytes. A driver only writes.
//!
//! An object is made in this order:
//!
//! 1. A lane reads on and counts, until there is enough for an object or its first event is old enough. It keeps nothing of what it read,
//!    so that memory doesn't depend on an object's size.
//! 2. The object's *intent*, which is its manifest with what of the journal belongs to it, is made durable
//!    (`intent_log.rs`).
//! 3. The store writes the events, which are read from the journal once more (`content.rs`). Meanwhile the lane goes on with 1 and 2 for
//!    the next object (`uploads.rs`).
//! 4. When the object is durable, and those before it are, the lane's cursor passes it, and the ledger counts what was
//!    written.
//!
//! Where types are told apart, or days or hours of the events, a run of positions has an object for each that has events in it: they are
//! gathered, committed and passed together, as one object otherwise is. Which of them an event belongs to follows from the event alone.
//!
//! A crash
//!
//! * before 2 leaves nothing: the lane reads the same events again and may cut them otherwise;
//! * between 2 and 4 leaves intents that the saved cursor hasn't passed: the lane begins with them. The store writes
//!   the same bytes under the same names, or finds them there;
//! * behind 4, before the ledger is saved, looks the same. Where objects before these were written since, the cursor
//!   is behind them too; they are counted and not written, for what is saved begins with the oldest object that isn't done.
//!
//! What belongs to an object is fixed by the routes that hold when it is committed. Should they be others when it is
//! written, an event of its positions that they lead to the store and those didn't is counted as skipped.

mod content;
mod intent;
mod intent_log;
mod object_builder;
mod uploads;
mod version1;

pub(crate) use content::Content;
pub(crate) use intent::ObjectIntent;
pub(crate) use intent_log::IntentLog;
pub(crate) use object_builder::ObjectBuilder;
pub(crate) use uploads::{Attempted, UploadAttempt, Uploads};
