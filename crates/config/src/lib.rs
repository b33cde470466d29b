//! The configuration: one TOML file, the environment and flags become one typed, checked [`Configuration`], or [`settings::Diagnostics`] with all
//! errors.
//!
//! It is read in two steps: each setting is parsed into a type, then the values are validated against each other. Both
//! steps collect errors, so one run shows them all.

mod admin;
mod bridge;
mod bus;
mod changes;
mod configuration;
pub mod configuration_file;
mod console;
mod declared;
mod etcd;
mod event_types;
mod flags;
mod gateway;
mod inputs;
mod intakes;
mod journal;
mod json_schema;
mod load;
mod log;
mod masking;
mod needs_restart;
mod old_names;
pub mod owner_file;
#[cfg(test)]
mod page_blocks;
mod peers;
pub mod port;
mod push;
mod registration;
mod result_paths;
mod role;
mod role_tables;
mod server_address;
mod setting_origins;
mod sinks;
mod stopping;
#[cfg(test)]
mod tests;
pub mod token_file;
mod upstreams;
mod writer;
mod writer_table;

pub use admin::Admin;
pub use bus::BusConfig;
pub use changes::changes;
pub use configuration::{Configuration, load};
pub use console::Console;
pub use declared::{DeclaredTable, declared, plain};
pub use event_types::aggregate::AggregateConfig;
pub use event_types::event_type::TypeConfig;
pub use event_types::schema::TypeSchema;
pub use event_types::schema_files;
pub use flags::Flags;
pub use gateway::{ADMIN, ConnectionLimits, GatewayConfig};
pub use inputs::{Inputs, OF_FLAGS};
pub use intakes::IntakeConfig;
pub use intakes::kinds::all as kinds_of_intakes;
pub use journal::Journal;
pub use json_schema::json_schema;
pub use load::ConfigError;
pub use log::{Log, LogFormat, LogLevel};
pub use masking::{masked, masked_variables};
pub use needs_restart::needs_restart;
pub use old_names::new_path;
pub use push::Push;
pub use push::otlp::OtlpConfig;
pub use push::statsd::StatsdConfig;
pub use registration::WriterEtcd;
pub use role::Role;
pub use setting_origins::{SettingOrigin, SettingSource, setting_origins};
pub use sinks::kinds::names as kinds_of_sinks;
pub use sinks::route::Route;
pub use sinks::{SinkConfig, SinkName, SinkSettings};
pub use stopping::Stopping;
pub use writer::{ADMIN as WRITER_ADMIN, WriterConfiguration, load as load_writer};
