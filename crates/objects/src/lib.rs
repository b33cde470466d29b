//! What stores of whole objects share, such as files of a directory or objects of Swift. An object can't be appended to, and never changes
//! once it has its name.
//!
//! An object is stored exactly once by its *manifest*: delivery fixes which events an object holds, its encoding and its name, and makes that
//! durable before the first byte is written. After any failure the same manifest is sent again, the same bytes are written, and an object that
//! exists under the name is compared. A store lists nothing, decides nothing and remembers nothing.

mod attachment_rule;
mod codec;
pub mod description;
pub mod encoder;
mod exchange;
mod line;
mod manifest;
mod memory_budget;
pub mod over_http;
mod parquet;
mod parts;
mod period;
mod portions;
mod prefix;
pub mod read;
mod rules;
mod sealed;
mod settings;
mod side_folder;
mod sink;
mod store;
mod verified_body;
mod writer;

pub use self::sink::ObjectSink;
pub use attachment_rule::AttachmentRule;
pub use codec::{Codec, UnknownCodec};
pub use exchange::{ObjectDownload, ObjectQuery, ObjectUpload};
pub use line::{Line, line_bytes};
pub use manifest::{Manifest, Portion};
pub use memory_budget::MemoryBudget;
pub use parts::{NoParts, Parts};
pub use period::{InvalidPeriod, Period};
pub use prefix::{InvalidPrefix, Prefix};
pub use rules::ObjectFormat;
pub use sealed::Sealed;
pub use settings::{OBJECT_LAYOUT, OBJECT_SETTINGS, layout_of, read_rules, rules_of_files};
pub use side_folder::{InvalidFolder, SideFolder};
pub use store::ObjectStore;
