//! Delivery to stores of objects. It decides for all these stores which events an object holds, its name, and that a
//! retry writes the same bytes. A driver only writes.
//!
//! The steps to write an object:
//!
//! 1. A lane reads on and counts, until there is enough for an object or its first event is old enough. It keeps
//!    nothing of what it read, so memory does not depend on an object's size.
//! 2. The object's *intent* is durable (`intent_log.rs`): its manifest, and which events of the journal belong to it.
//! 3. The store writes the events, which are read from the journal again (`content.rs`). At the same time the lane
//!    continues with 1 and 2 for the next object (`uploads.rs`).
//! 4. When the object is durable, and those before it are, the lane's cursor passes it, and the ledger counts what was
//!    written.
//!
//! Objects may be separate for types, or for days or hours of the events. A run of positions then has an object for
//! each of these with events in it. They are gathered, committed and passed together, like a single object. The event
//! alone determines its object.
//!
//! A crash
//!
//! * before 2 leaves nothing: the lane reads the same events again and may divide them differently;
//! * between 2 and 4 leaves intents that the saved cursor hasn't passed: the lane begins with them. The store writes
//!   the same bytes under the same names, or finds them there;
//! * after 4, before the ledger is saved, looks the same. If objects before these were written since, the cursor is
//!   after them too. They are counted and not written: what is saved begins with the oldest unfinished object.
//!
//! The routes at the time of the commit decide which events belong to an object. If the routes change before it is
//! written, an event that only the new routes send to the store is counted as skipped.

mod content;
mod intent;
mod intent_log;
mod object_builder;
mod uploads;
mod version1;

pub(crate) use content::{Account, Content};
pub(crate) use intent::ObjectIntent;
pub(crate) use intent_log::IntentLog;
pub(crate) use object_builder::ObjectBuilder;
pub(crate) use uploads::{Attempted, UploadAttempt, Uploads};
