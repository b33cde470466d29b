//! The declaration of a store's crate for configurations: the settings of its table, and the store that they describe.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::path::Path;

use settings::{Section, Setting, SettingsReader};

use crate::Sink;

/// How a store stores events, as settings with their values. The writers of an upstream must have the same, and a
/// gateway's table may name them. Addresses, credentials, pool sizes and timeouts are not part of it.
pub type Layout = Vec<(&'static str, String)>;

/// A part of a layout, and the settings that define it. The part has no name if delivery reads the settings.
pub type LayoutPart = (&'static str, &'static [&'static str]);

/// The value of a part that isn't set.
pub const NONE: &str = "none";

/// The folders of relative paths.
#[derive(Clone, Copy, Debug)]
pub struct Folders<'a> {
    /// The folder of the configuration file.
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

/// Reads the settings of a sink except those of every sink. `None` after an error, which is reported.
type Read = fn(&mut SettingsReader<'_>, &Section<'_>, Folders<'_>) -> Option<Box<dyn StoreConfig>>;

/// A kind of sink, as its store's crate declares it.
#[derive(Debug)]
pub struct SinkKind {
    /// The name in configurations: `kind = "NAME"`.
    pub name: &'static str,
    /// The settings of its table in groups, without those of every sink. A kind that has `serve` stores objects.
    pub settings: &'static [&'static [Setting]],
    /// The settings whose values are secrets.
    pub secrets: &'static [&'static str],
    /// The settings whose values are URLs, which may have passwords.
    pub urls: &'static [&'static str],
    /// Reads the settings except those of every sink.
    pub read: Read,
    /// Whether its store keeps cursors: [`Capabilities::fenced`](crate::Capabilities), for a gateway whose writers have the store.
    pub is_fenced: bool,
    /// The same for [`Capabilities::recognises_ids`](crate::Capabilities).
    pub recognises_ids: bool,
    /// Whether it stores in files of this machine: if so, each writer has its own store.
    pub is_embedded: bool,
    /// Whether a gateway reads events back through writers if its table doesn't set `read`.
    pub is_read_by_default: bool,
    /// The parts of its layout. A kind that has `shards` can be one of several shards.
    pub layout: &'static [LayoutPart],
    /// Reads the layout from a gateway's table for a writer's sink.
    pub read_layout: fn(&mut SettingsReader<'_>, &Section<'_>) -> Layout,
    /// The limits of a writer's store with this layout, of which some parts may be unknown.
    pub json_limits_of: fn(&BTreeMap<String, String>) -> JsonLimits,
}

impl SinkKind {
    /// A kind of this name without settings.
    #[must_use]
    pub const fn new(name: &'static str, read: Read) -> Self {
        Self {
            name,
            settings: &[],
            secrets: &[],
            urls: &[],
            read,
            is_fenced: false,
            recognises_ids: false,
            is_embedded: false,
            is_read_by_default: false,
            layout: &[],
            read_layout: |_, _| Layout::new(),
            json_limits_of: |_| JsonLimits::default(),
        }
    }

    /// All settings of its table, without those of every sink.
    pub fn all_settings(&self) -> impl Iterator<Item = &'static Setting> + use<> {
        self.settings.iter().copied().flatten()
    }

    /// Whether it has this setting.
    #[must_use]
    pub fn has_key(&self, key: &str) -> bool {
        self.all_settings().any(|known| known.name == key)
    }

    /// Whether it stores events in objects, each of them complete or absent.
    #[must_use]
    pub fn has_objects(&self) -> bool {
        self.has_key("serve")
    }
}

/// The location that a sink writes to. Two sinks can't have one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Destination {
    /// The parts that identify it.
    pub id: Vec<String>,
    /// What it is: "table".
    pub what: &'static str,
    /// The settings that make two of them different: "another `url` or `table`".
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
    /// Its kind.
    fn kind(&self) -> &'static SinkKind;

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

    /// If it can't be read: the reason, and what to change.
    fn why_not_read(&self) -> &'static str {
        "sinks of its kind can't be read: name another one in `routes` and `read`"
    }

    /// Whether its stored events have their types.
    fn holds_types(&self) -> bool {
        true
    }

    /// The JSON that it can't store.
    fn json_limits(&self) -> JsonLimits {
        JsonLimits::default()
    }

    /// The file or the directory that it stores in, if it is embedded.
    fn local_path(&self) -> Option<&Path> {
        None
    }

    /// Bytes of memory that its sink uses, in addition to the budgets.
    fn memory_bytes(&self) -> usize {
        0
    }

    /// A command of a shell that shows what it has stored, without secrets.
    fn look_command(&self) -> Option<String> {
        None
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
