//! Forebay accepts JSON over HTTP, makes it durable, and stores it once in every database it is routed to.

mod admin;
mod admin_address;
mod admin_json;
mod allocator;
mod cli;
mod commands;
mod compose;
mod configuration_report;
mod discovery;
mod dry_run;
mod errors;
mod etcd;
mod file_stamp;
mod log;
mod memory_plan;
mod metrics;
mod object_registry;
mod opened;
mod process;
mod read_back;
mod reload;
mod retention;
mod roles;
mod signals;
mod tls;
mod token_watch;
mod type_info;

use std::ffi::OsString;
use std::fmt::Display;
use std::process::ExitCode;

use config::{LogLevel, Role};
use settings::Environment;

use crate::cli::role::{self, RoleError};
use crate::cli::{Command, EarlyFile};

fn main() -> ExitCode {
    log::abort_on_panic();
    log::subscribe();
    allocator::configure();
    process::file_size::outlive_limit();
    let environment = Environment::of(std::env::vars_os());
    let typed: Vec<OsString> = std::env::args_os().collect();
    let file = EarlyFile::of(&typed, &environment);
    // A command's output is for its user: the format of the log is for processes that run on.
    if role::runs_on(&typed)
        && let Some(format) = file.log_format(&environment)
    {
        log::configure(format, LogLevel::Info);
    }
    let (role, command_line) = match role::select(role::of_environment(&environment), file.role(), typed) {
        Ok(selected) => selected,
        Err(error) => return wrong_role(&error),
    };
    let cli = match file.parse(command_line, role) {
        Ok(cli) => cli,
        Err(error) => return wrong_command_line(&error),
    };
    match cli.into_command() {
        Command::Serve(common) => exit(roles::serve::run(&common.of_role(Role::Serve), &environment)),
        Command::Gateway(flags) => exit(roles::serve::run(&flags.into_common(), &environment)),
        Command::Writer(common) => exit(roles::writer::run(&common.of_role(Role::Writer), &environment)),
        Command::Check(flags) => exit(commands::check::run(flags, role, &environment)),
        Command::Health(flags) => exit(commands::health::run(&flags, role, &environment)),
        Command::Status(flags) => exit(commands::status::run(&flags, role, &environment)),
        Command::Reload(flags) => exit(commands::reload::run(&flags, role, &environment)),
        Command::Drain(flags) => exit(commands::drain::run(&flags, role, &environment)),
        Command::Try(flags) => exit(commands::try_event::run(&flags, &environment)),
        Command::Test(flags) => exit(commands::test::run(&flags, &environment)),
        Command::Journal(command) => exit(commands::journal::run(&command)),
        Command::Dead(command) => exit(commands::dead::run(&command)),
        Command::Route(command) => exit(commands::route::run(&command)),
        Command::Schema(command) => exit(commands::schema::run(&command)),
        Command::Bench(flags) => exit(commands::bench::run(*flags)),
        Command::Load(flags) => exit(commands::load::run(*flags)),
        Command::Token(command) => exit(commands::token::run(&command, role, &environment)),
        Command::Completions { shell } => exit(commands::generated_help::print_completions(shell)),
        Command::Man { directory } => exit(commands::generated_help::write_manual(&directory)),
    }
}

/// Help and versions aren't errors: clap prints them.
fn wrong_command_line(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() || !log::is_json() {
        error.exit();
    }
    log::fatal(error.to_string().trim_end());
    log::flush();
    configuration_report::EXIT_CONFIGURATION.into()
}

/// A role that can't be taken on is a mistake in the configuration.
fn wrong_role(error: &RoleError) -> ExitCode {
    log::fatal(error);
    log::flush();
    configuration_report::EXIT_CONFIGURATION.into()
}

/// The code that a command gives, or 1 after saying why it failed.
fn exit<E: Display>(result: Result<u8, E>) -> ExitCode {
    let code = match result {
        Ok(code) => code.into(),
        Err(error) => {
            log::fatal(error);
            ExitCode::FAILURE
        }
    };
    log::flush();
    code
}
