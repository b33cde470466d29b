//! The command line: its definition, and the commands that ask a running server or work on files. The binary runs the others, because
//! they compose a server.

pub mod admin_address;
mod admin_client;
mod admin_port;
mod bench;
mod config_command;
mod dead;
pub mod errors;
mod example;
mod figures;
mod flags;
mod generated_help;
mod health;
pub mod input;
mod interrupt;
mod journal;
mod load;
mod log;
mod next;
pub mod output;
mod profile;
mod progress;
mod reload;
mod route;
mod schema;
pub mod signals;
mod status;
mod table;
mod tap;
mod token;
mod top;

pub use admin_port::AdminPort;
pub use dead::{letter_as_json, on_one_line};
pub use flags::{
    CheckFlags, Cli, Common, DoctorFlags, DrainFlags, EarlyFile, Examined, ReportFlags, TestFlags, TryFlags, role,
};
pub use next::{Next, run};

/// The exit code of a process whose configuration has errors.
pub const EXIT_CONFIGURATION: u8 = 2;
