//! Forebay: takes JSON over HTTP, makes it durable, and stores it once in every database it is routed to.

mod admin;
mod admin_client;
mod allocator;
mod banner;
mod bench_command;
mod check;
mod cli;
mod config;
mod dead_command;
mod dead_json;
mod descriptors;
mod discovery;
mod disk_size;
mod drain_command;
mod etcd;
mod exposition;
mod file_size;
mod file_stamp;
mod generated_help;
mod health_command;
mod interrupt;
mod journal_command;
mod load_command;
mod log;
mod mapped_code;
mod memory;
mod memory_limit;
mod metrics;
mod object_board;
mod opened;
mod output;
mod owner_file;
mod ports_tls;
mod read_back;
mod registration;
mod reload;
mod role;
mod route_command;
mod route_json;
mod schema_command;
mod schema_files;
mod serve;
mod serve_error;
mod service_manager;
mod test_command;
mod tls_files;
mod tls_watch;
mod token_command;
mod token_file;
mod token_watch;
mod trial;
mod try_command;
mod type_board;
mod upstream_metrics;
mod wiring;
mod writer_admin;
mod writer_command;

use std::ffi::OsString;
use std::fmt::Display;
use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command};
use crate::role::{Role, RoleError};
use settings::Environment;

fn main() -> ExitCode {
    allocator::configure();
    file_size::outlive_limit();
    let environment = Environment::of_process();
    let role = match Role::of_environment(&environment) {
        Ok(role) => role,
        Err(error) => return wrong_role(&error),
    };
    let typed: Vec<OsString> = std::env::args_os().collect();
    let command_line = match role.map_or(Ok(typed.clone()), |role| role.into_command_line(typed)) {
        Ok(command_line) => command_line,
        Err(error) => return wrong_role(&error),
    };
    match Cli::parse_from(command_line).into_command() {
        Command::Serve(common) => exit(serve::run(&common.of_serve(), &environment)),
        Command::Gateway(flags) => exit(serve::run(&flags.into_common(), &environment)),
        Command::Writer(flags) => exit(writer_command::run(&flags.into_common(), &environment)),
        Command::Check(flags) => exit(check::run(flags, role, &environment)),
        Command::Health(flags) => exit(health_command::run(&flags, role, &environment)),
        Command::Drain(flags) => exit(drain_command::run(&flags, role, &environment)),
        Command::Try(flags) => exit(try_command::run(&flags, &environment)),
        Command::Test(flags) => exit(test_command::run(&flags, &environment)),
        Command::Journal(command) => exit(journal_command::run(&command)),
        Command::Dead(command) => exit(dead_command::run(&command)),
        Command::Route(command) => exit(route_command::run(&command)),
        Command::Schema(command) => exit(schema_command::run(&command)),
        Command::Bench(flags) => exit(bench_command::run(&flags)),
        Command::Load(flags) => exit(load_command::run(&flags)),
        Command::Token(command) => exit(token_command::run(&command)),
        Command::Completions { shell } => exit(generated_help::print_completions(shell)),
        Command::Man { directory } => exit(generated_help::write_manual(&directory)),
    }
}

/// A role that can't be taken on is a mistake in the configuration.
fn wrong_role(error: &RoleError) -> ExitCode {
    log::fatal(error);
    log::flush();
    check::EXIT_CONFIGURATION.into()
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
