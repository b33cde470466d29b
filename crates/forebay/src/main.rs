//! Forebay accepts JSON over HTTP, makes it durable, and stores it once in every database it is routed to.

mod actions;
mod admin;
mod allocator;
mod bus_events;
mod caller;
mod commands;
mod compose;
mod configuration_report;
mod configuration_sources;
mod dry_run;
mod file_stamp;
mod findings;
mod lines;
mod log;
mod memory_plan;
mod memory_use;
mod metrics;
mod object_registry;
mod offered_status;
mod opened;
mod overview;
mod problems;
mod process;
mod push;
mod read_back;
mod recent_refusals;
mod reload;
mod reload_requests;
mod removed_routes;
mod retention;
mod roles;
mod signals;
mod story;
mod tapping;
mod tls;
mod token_watch;
mod type_info;

use std::ffi::OsString;
use std::fmt::Display;
use std::process::ExitCode;

use cli::{EXIT_CONFIGURATION, EarlyFile, Next};
use config::LogLevel;
use settings::Environment;

use cli::role::{self, RoleError};

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
    match cli::run(cli, role, &environment) {
        Next::Exit(result) => exit(result),
        Next::Serve(common) => exit(roles::serve::run(&common, &environment)),
        Next::Writer(common) => exit(roles::writer::run(&common, &environment)),
        Next::Check(flags) => exit(commands::check::run(flags, role, &environment)),
        Next::Doctor(flags) => exit(commands::doctor::run(&flags, role, &environment)),
        Next::Report(flags) => exit(commands::report::run(&flags, role, &environment)),
        Next::Drain(flags) => exit(commands::drain::run(&flags, role, &environment)),
        Next::Try(flags) => exit(commands::try_event::run(&flags, &environment)),
        Next::Test(flags) => exit(commands::test::run(&flags, &environment)),
    }
}

/// Help and versions aren't errors: clap prints them.
fn wrong_command_line(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() || !log::is_json() {
        error.exit();
    }
    log::fatal(error.to_string().trim_end());
    log::flush();
    EXIT_CONFIGURATION.into()
}

/// An impossible role is an error in the configuration.
fn wrong_role(error: &RoleError) -> ExitCode {
    log::fatal(error);
    log::flush();
    EXIT_CONFIGURATION.into()
}

/// The exit code of a command, or 1 after its error is logged.
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
