//! Reads settings: one TOML document, the environment and flags.
//!
//! A later source wins over an earlier one: the document, then the environment, then flags. An error in any of them is
//! still reported, so one run shows them all, each with its file, its line and a hint.
//!
//! This crate knows no setting. A component declares its own, and reads them from its table:
//!
//! ```
//! use settings::{Section, Setting, SettingsReader, URL, Unset, client, names};
//!
//! const MAX_BYTES: Setting = Setting::size("max_bytes", (1 << 10, 1 << 30), "the size of a file").or(Unset::Size(1 << 20));
//! /// The settings of the component.
//! const SETTINGS: &[Setting] = &[
//!     Setting::new("url", URL, "the server").required().example("\"http://HOST\""),
//!     MAX_BYTES,
//!     client::CA,
//!     client::TIMEOUT,
//! ];
//!
//! struct Settings {
//!     url: String,
//!     max_bytes: u64,
//! }
//!
//! fn read(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> Option<Settings> {
//!     reader.check_keys(section, names(SETTINGS));
//!     // Every setting is read before the first `?`, so all errors are reported.
//!     let url = reader.required(section, "url", "add the server, as in url = \"http://HOST\"", |text| Ok(text.to_owned()));
//!     let max_bytes = reader.size_or_default(section, &MAX_BYTES);
//!     Some(Settings { url: url?, max_bytes })
//! }
//! ```

pub mod client;
mod diagnostics;
pub mod duration;
mod environment;
pub mod files;
mod folder;
mod invalid_value;
mod old_name;
pub mod path;
pub mod pointer;
mod reader;
mod section;
pub mod setting;
pub mod size;

pub use ::did_you_mean::nearest;
pub use diagnostics::{Diagnostic, Diagnostics, Mask, Mistake, SourceId, SourceSpan};
pub use environment::{Environment, FILE, InvalidVariable, PREFIX, Unreplaced, VariableValue, expand, variable_name};
pub use folder::Folder;
pub use invalid_value::{InvalidValue, number_within, one_of, parsed, word};
pub use old_name::OldName;
pub use reader::SettingsReader;
pub use section::{KeyPath, Located, Section};
pub use setting::{
    ADDRESS, EXPRESSION, Kind, PATH, POINTER, Setting, TEXTS, TakesEffect, URL, Unset, name_array, names, words,
};
