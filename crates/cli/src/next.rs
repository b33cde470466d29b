//! From the command line to the part of the program that runs.

use config::Role;
use settings::Environment;

use crate::flags::{CheckFlags, Cli, Command, Common, DoctorFlags, DrainFlags, ReportFlags, TestFlags, TryFlags};
use crate::{
    bench, config_command, dead, example, generated_help, health, journal, load, log, profile, reload, route, schema,
    status, tap, token, top,
};

/// The next action of the binary.
pub enum Next {
    /// The command has run: the process ends with its exit code, or with its error.
    Exit(anyhow::Result<u8>),
    /// `forebay serve` and `forebay gateway`.
    Serve(Common),
    /// `forebay writer`.
    Writer(Common),
    /// `forebay check`.
    Check(CheckFlags),
    /// `forebay doctor`.
    Doctor(Box<DoctorFlags>),
    /// `forebay report`.
    Report(Box<ReportFlags>),
    /// `forebay drain`.
    Drain(DrainFlags),
    /// `forebay try`.
    Try(Box<TryFlags>),
    /// `forebay test`.
    Test(Box<TestFlags>),
}

/// Runs the command, if it needs no composed server.
#[must_use]
pub fn run(cli: Cli, role: Option<Role>, environment: &Environment) -> Next {
    Next::Exit(match cli.into_command() {
        Command::Serve(common) => return Next::Serve(common.of_role(Role::Serve)),
        Command::Gateway(flags) => return Next::Serve(flags.into_common()),
        Command::Writer(common) => return Next::Writer(common.of_role(Role::Writer)),
        Command::Check(flags) => return Next::Check(flags),
        Command::Doctor(flags) => return Next::Doctor(flags),
        Command::Report(flags) => return Next::Report(flags),
        Command::Drain(flags) => return Next::Drain(flags),
        Command::Try(flags) => return Next::Try(flags),
        Command::Test(flags) => return Next::Test(flags),
        Command::Health(flags) => health::run(&flags, role, environment),
        Command::Status(flags) => status::run(&flags, role, environment),
        Command::Log(flags) => log::run(&flags, role, environment),
        Command::Top(flags) => top::run(&flags, role, environment),
        Command::Tap(flags) => tap::run(&flags, role, environment),
        Command::Reload(flags) => reload::run(&flags, role, environment),
        Command::Profile(flags) => profile::run(&flags, role, environment),
        Command::Journal(command) => journal::run(&command),
        Command::Dead(command) => dead::run(&command),
        Command::Route(command) => route::run(&command),
        Command::Config(command) => config_command::run(&command),
        Command::Schema(command) => schema::run(&command),
        Command::Bench(flags) => bench::run(*flags),
        Command::Load(flags) => load::run(*flags),
        Command::Token(command) => token::run(&command, role, environment),
        Command::Example(flags) => example::run(&flags),
        Command::Completions { shell } => generated_help::print_completions(shell),
        Command::Man { directory } => generated_help::write_manual(&directory),
    })
}
