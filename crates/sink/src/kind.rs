//! What a store's crate declares for configurations: the settings of its table, and the store that they describe.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::path::Path;

use settings::{Section, SettingsReader};

use crate::Sink;

/// How a store stores events, as settings with their values. The writers of an upstream must have the same, and a gateway's table may
/// name them. Addresses, credentials, sizes of pools and timeouts aren't part of it.
pub type Layout = Vec<(&'static str, String)>;

/// A part of a layout, and the settings that define it. The part has no name if delivery reads the settings.
pub type LayoutPart = (&'static str, &'static [&'static str]);

/// The value of a part that isn't set.
pub const NONE: &str = "none";

/// The folders of relative paths.
#[derive(Clone, Copy, Debug)]
pub struct Folders<'a> {
    /// That of the configuration's file.
    pub configuration: &'a Path,
    /// The data directory, for embedded stores.
    pub data: &'a Path,
}

/// Valid JSON that a store can't store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JsonLimits {
    /// It rejects the character U+0000.
    pub rejects_nul: bool,
    /// It rejects objects with two members of one name.
    pub rejects_duplicate_keys: bool,
}

/// A kind of sink.
pub trait SinkKind: fmt::Debug + Sync {
    /// The name in configurations: `kind = "NAME"`.
    fn name(&self) -> &'static str;

    /// The settings of its table, also those of every sink. One that has `serve` stores objects.
    fn keys(&self) -> &'static [&'static str];

    /// The settings whose values are secrets.
    fn secrets(&self) -> &'static [&'static str] {
        &[]
    }

    /// The settings whose values are URLs, which may have passwords.
    fn urls(&self) -> &'static [&'static str] {
        &[]
    }

    /// Reads the settings but for those of every sink. `None` after an error, which is reported.
    fn read(
        &self,
        reader: &mut SettingsReader<'_>,
        section: &Section<'_>,
        folders: Folders<'_>,
    ) -> Option<Box<dyn StoreConfig>>;

    /// Whether its store keeps cursors: [`Capabilities::fenced`](crate::Capabilities), for a gateway whose writers have the store.
    fn is_fenced(&self) -> bool {
        false
    }

    /// Whether it stores in files of this machine: then each writer has a store of its own.
    fn is_embedded(&self) -> bool {
        false
    }

    /// Whether it stores events in objects, each of them whole or not at all.
    fn has_objects(&self) -> bool {
        self.keys().contains(&"serve")
    }

    /// Whether a gateway reads events back through writers if its table doesn't set `read`.
    fn is_read_by_default(&self) -> bool {
        false
    }

    /// The parts of its layout.
    fn layout(&self) -> &'static [LayoutPart] {
        &[]
    }

    /// Reads the layout from a gateway's table for a writer's sink.
    fn read_layout(&self, reader: &mut SettingsReader<'_>, section: &Section<'_>) -> Layout {
        let _ = (reader, section);
        Layout::new()
    }

    /// The limits of a writer's store with this layout, of which some parts may be unknown.
    fn json_limits_of(&self, layout: &BTreeMap<String, String>) -> JsonLimits {
        let _ = layout;
        JsonLimits::default()
    }
}

/// The location that a sink writes to. Two sinks can't have one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Destination {
    /// What identifies it.
    pub id: Vec<String>,
    /// What it is: "table".
    pub what: &'static str,
    /// What makes two of them different: "another `url` or `table`".
    pub another: &'static str,
}

/// Compares values of any type.
pub trait SameAs: Any {
    /// Whether the other is of this type, and equal.
    fn is_same(&self, other: &dyn Any) -> bool;
}

impl<T: Any + PartialEq> SameAs for T {
    fn is_same(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<T>() == Some(self)
    }
}

/// The settings of a store. `Display` is a short summary without secrets.
pub trait StoreConfig: SameAs + fmt::Debug + fmt::Display + Send + Sync {
    /// The name of its kind.
    fn kind(&self) -> &'static str;

    /// The sink, which isn't connected yet.
    fn build(&self) -> Sink;

    /// The location that it writes to, if there is one.
    fn destination(&self) -> Option<Destination>;

    /// Its layout.
    fn layout(&self) -> Layout {
        Layout::new()
    }

    /// Whether events can be read back from it.
    fn can_read(&self) -> bool {
        false
    }

    /// The JSON that it can't store.
    fn json_limits(&self) -> JsonLimits {
        JsonLimits::default()
    }

    /// The file or the directory that it stores in, if it is embedded.
    fn local_path(&self) -> Option<&Path> {
        None
    }

    /// Whether it stores events in objects, each of them whole or not at all.
    fn has_objects(&self) -> bool {
        false
    }

    /// Bytes of memory that its sink takes, whatever the budgets are.
    fn memory_bytes(&self) -> usize {
        0
    }

    /// A command of a shell that shows what it has stored, without secrets.
    fn look_command(&self) -> Option<String> {
        None
    }

    /// Whether it can be one of several shards.
    fn can_be_sharded(&self) -> bool {
        false
    }

    /// Reads the settings of another shard of this store.
    fn read_shard(
        &self,
        reader: &mut SettingsReader<'_>,
        section: &Section<'_>,
        folders: Folders<'_>,
    ) -> Option<Box<dyn StoreConfig>> {
        let _ = (reader, section, folders);
        None
    }

    /// The same with a limit of connections, if it has none and needs one.
    fn with_connections_max(&self, max: NonZeroUsize) -> Option<Box<dyn StoreConfig>> {
        let _ = max;
        None
    }
}

impl dyn StoreConfig {
    /// The settings, if they are of this type.
    #[must_use]
    pub fn downcast_ref<C: Any>(&self) -> Option<&C> {
        let this: &dyn Any = self;
        this.downcast_ref()
    }
}

impl PartialEq for dyn StoreConfig {
    fn eq(&self, other: &Self) -> bool {
        self.is_same(other)
    }
}

impl Eq for dyn StoreConfig {}
