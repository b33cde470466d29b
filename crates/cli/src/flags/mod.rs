//! The command line as types, without the commands' work.

mod admin_server;
mod bench;
mod check;
mod config_command;
mod dead;
mod doctor;
mod drain;
mod dry_run;
mod early;
mod example;
mod health;
mod load;
mod log;
mod old_flags;
mod output;
#[cfg(test)]
mod page_commands;
#[cfg(test)]
mod page_flags;
mod path_value;
mod profile;
#[cfg(test)]
mod reference;
pub mod role;
mod route;
mod schema;
mod send;
mod server;
mod token;
mod token_flag;
mod watch;

use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use config::Role;
use config::{ConfigError, Configuration, Flags, WriterConfiguration};
use settings::{Diagnostics, Environment};
use text::set_own_flags;

use path_value::path;

/// The usual name of a configuration.
const USUAL_NAME: &str = "forebay.toml";
/// The data directory of a gateway, or of all in one process.
const DATA: &str = "./forebay-data";
/// The data directory of a writer.
const WRITER_DATA: &str = "./forebay-writer";
pub(crate) use admin_server::{AdminAddress, AdminServer, ReloadFlags, StatusFlags};
pub(crate) use bench::BenchFlags;
pub use check::CheckFlags;
pub(crate) use config_command::ConfigCommand;
pub(crate) use dead::{DeadAt, DeadChoice, DeadCommand, DeadEvent, DeadLetters, DeadList};
pub use doctor::{DoctorFlags, Examined, ReportFlags};
pub use drain::DrainFlags;
pub use dry_run::{TestFlags, TryFlags};
pub use early::EarlyFile;
pub(crate) use example::ExampleFlags;
pub(crate) use health::HealthFlags;
pub(crate) use load::LoadFlags;
pub(crate) use log::LogFlags;
pub(crate) use output::OutputFlags;
pub(crate) use profile::{ProfileFlags, ProfileFormat};
pub(crate) use route::{RouteAccept, RouteCommand, RouteDrop, RouteList};
pub(crate) use schema::{SchemaCommand, SchemaDiff, SchemaInfer};
pub(crate) use send::SendFlags;
pub(crate) use server::CaFlag;
pub(crate) use token::{TokenCommand, TokenList, TokenNew, TokenPlace};
pub(crate) use token_flag::TokenFlag;
pub(crate) use watch::{TapFlags, TopFlags};

/// Accepts JSON over HTTP, makes it durable, and stores it once in your databases.
#[derive(Debug, Parser)]
#[command(name = "forebay", version, args_conflicts_with_subcommands = true)]
#[command(
    after_help = "Without a command the role runs that FOREBAY_ROLE or `role` in the configuration names: serve (the default), gateway or writer.\n\nExample: forebay --data /var/lib/forebay"
)]
pub struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: Common,
}

impl Cli {
    /// The command that was named: `serve` if none was.
    pub(crate) fn into_command(self) -> Command {
        self.command.unwrap_or(Command::Serve(self.serve))
    }
}

/// The commands of Forebay.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Accepts events and stores them, in one process
    #[command(after_help = "Example: forebay serve --config forebay.toml --listen 127.0.0.1:8080")]
    Serve(Common),
    /// Accepts events and sends them to writers: the front-end of two services
    #[command(after_help = "Example: forebay gateway --writer http://127.0.0.1:8081")]
    Gateway(GatewayFlags),
    /// Stores the events that gateways send: the back-end of two services
    ///
    /// Without a configuration it keeps an embedded store in its data directory.
    #[command(
        after_help = "Example: forebay writer --config writer.toml",
        mut_arg("config", |flag| flag.help("The configuration file (TOML); without one, all events go to events.db in the data directory")),
        mut_arg("directory", |flag| flag.default_value(WRITER_DATA).help("The data directory: the embedded store and the tokens")),
        mut_arg("listen", |flag| flag.help("The address that gateways use [default: 127.0.0.1:8081] [env: FOREBAY_WRITER_LISTEN]")),
        mut_arg("admin", |flag| flag.help("The address of metrics [default: 127.0.0.1:9001] [env: FOREBAY_WRITER_ADMIN]"))
    )]
    Writer(Common),
    /// Checks a role's configuration and lists every mistake in it
    ///
    /// Starts nothing. Exits with 0 if the configuration is right, and with 2 if not.
    #[command(
        after_help = "Example: forebay check --config forebay.toml\n         forebay check --role writer --config writer.toml"
    )]
    Check(CheckFlags),
    /// Checks whether a server on this machine is alive
    ///
    /// Use it as the health check of a container. It sends a request without a token to the admin port of the configuration, and waits 3 seconds at
    /// most for each step. Exits with 0 if the response is 200, and with 1 otherwise.
    #[command(after_help = "Example: forebay health\n         forebay health --ready --role writer")]
    Health(HealthFlags),
    /// Shows health, sinks, backlogs, errors, journal and disk of a process
    ///
    /// The command asks the admin port twice within a second, to find the rate. Exits with 0 if the process is healthy, with 3 if not, and with 1 if the
    /// command can't ask the process. It is unhealthy if it isn't ready, a sink waits, fails or has stopped, a removed sink holds events, events or
    /// dead letters are lost, or a writer isn't registered. Dead letters and a backlog are shown, but do not make it unhealthy.
    #[command(
        after_help = "Example: forebay status --config forebay.toml\n         forebay status --role writer --output json"
    )]
    Status(StatusFlags),
    /// Checks disk, limits, clock, stores, tokens and certificates of a process
    ///
    /// It works with and without a running process, and changes nothing unless you set --write. Each line says what was seen and what to do. Exits with 0
    /// if there is no problem, with 3 if there is one, and with 2 if the configuration is wrong. Warnings don't change the exit code.
    #[command(
        after_help = "Example: forebay doctor --config forebay.toml\n         forebay doctor --role writer --config writer.toml --output json"
    )]
    Doctor(Box<DoctorFlags>),
    /// Writes status, metrics, log, profile and findings to one file
    ///
    /// It asks the running process over its admin port, for 20 seconds, and runs `forebay doctor`. The file has no payloads, headers, queries and secrets:
    /// you can give it to a colleague. The command prints the content of the file, and what it left out.
    #[command(
        after_help = "Example: forebay report --config forebay.toml\n         docker exec forebay forebay report - > report.tar.gz"
    )]
    Report(Box<ReportFlags>),
    /// Shows the last lines of a process's log, or changes its level for some time
    ///
    /// A process keeps its last 1,000 lines, 256 KiB at most. Another level ends after its time, and the level of the configuration is used again. At the
    /// level debug the log has requests, lanes and discovery, without payloads, headers and queries.
    #[command(after_help = "Example: forebay log\n         forebay log --level debug --for 10m")]
    Log(LogFlags),
    /// Shows rates, latencies and backlogs of a process, live
    ///
    /// In a terminal the screen is redrawn each second; `q` or Ctrl-C ends it. Elsewhere the command prints one screen; with --output json it
    /// prints a line each second. Rates are over the last 10 seconds.
    #[command(after_help = "Example: forebay top\n         forebay top --role writer --admin 10.0.0.9:9001")]
    Top(TopFlags),
    /// Shows live samples of the events that pass a point
    ///
    /// The process compares up to 2,000 events a second, and keeps the first 4 KiB of each. So a burst is sampled: a note on stderr says of how many.
    /// Ctrl-C ends it.
    #[command(
        after_help = "Example: forebay tap --type access --where status==500\n         forebay tap --at dead --output json"
    )]
    Tap(TapFlags),
    /// Reloads the configuration of a running server and shows the changes
    ///
    /// The server reads the file, the flags and the variables that it was started with. Exits with 0 if the new configuration is in use. Exits with 2
    /// if it is wrong or needs a restart, and nothing has changed; with 1 if the command can't ask the server, or the server couldn't apply it.
    /// `forebay check` checks a configuration without applying it.
    #[command(after_help = "Example: forebay reload --config forebay.toml")]
    Reload(ReloadFlags),
    /// Shows where a process spends its CPU time, or what allocates memory
    ///
    /// The process takes samples for some seconds and writes a flame graph. It needs no tool, no right and no restart, also in a container.
    #[command(
        after_help = "Example: forebay profile --seconds 10 > p.svg\n         forebay profile --heap --role writer --format folded"
    )]
    Profile(ProfileFlags),
    /// Delivers all events in the data directory of a removed server, and exits
    ///
    /// It accepts no events, closes open windows of aggregates, and writes objects that aren't full. You can interrupt it and run it again. Exits with
    /// 0 if everything is stored outside of the directory: you can then delete it. Exits with 3 if something remains, and lists it; stores and damaged
    /// parts of journals in the directory count. Exits with 1 if it can't start, for instance because a server uses the directory. Exits with 2 if
    /// the configuration is wrong, or lacks an aggregate that may have open windows.
    #[command(after_help = "Example: forebay drain --config gateway.toml --data /var/lib/forebay")]
    Drain(DrainFlags),
    /// Runs one payload through its type's schema and steps, without storing
    ///
    /// It shows what each step does. Without a type, the configuration finds it, as for a request whose path names none. Exits with 0 if Forebay
    /// would accept the event, with 3 if it would reject it, and with 2 if the configuration is wrong.
    #[command(after_help = "Example: forebay try --config forebay.toml access event.json")]
    Try(Box<TryFlags>),
    /// Runs test cases: input events and their expected output
    ///
    /// A case is a folder with `case.toml` and `input.ndjson`, or `input.timed` with the time of each event. It has the expected output in
    /// `expected.ndjson`, `refused.ndjson`, `filtered.ndjson` and, for an aggregate, `results.NAME.ndjson`. Leave a file out if nothing is expected
    /// there.
    /// Exits with 1 if a case fails, and with 2 if the configuration is wrong.
    #[command(after_help = "Example: forebay test --config forebay.toml cases")]
    Test(Box<TestFlags>),
    /// Inspects or repairs the journal of a data directory without a server
    #[command(subcommand, after_help = "Example: forebay journal verify --data /var/lib/forebay")]
    Journal(JournalCommand),
    /// Lists, shows, edits, replays and drops dead letters
    ///
    /// If a server uses the data directory, the command asks it over its admin address. `list` and `show` also work without a server.
    #[command(subcommand, after_help = "Example: forebay dead list --data /var/lib/forebay")]
    Dead(DeadCommand),
    /// Lists routes, discards the backlog of removed ones, resumes stopped lanes
    ///
    /// If a server uses the data directory, the command asks it over its admin address.
    #[command(subcommand, after_help = "Example: forebay route list --data /var/lib/forebay")]
    Route(RouteCommand),
    /// Lists the settings of the configuration file, and prints its schema
    #[command(subcommand, after_help = "Example: forebay config keys gateway")]
    Config(ConfigCommand),
    /// Infers a schema from samples, and compares two schemas
    #[command(subcommand, after_help = "Example: forebay schema infer access.ndjson > schemas/access.json")]
    Schema(SchemaCommand),
    /// Loads files and sends each line once, also after a restart
    ///
    /// It saves its progress in a file next to each input. Exits with 0 if all lines were accepted, with 3 if some were rejected, and with 1 if it
    /// stopped before the end.
    #[command(after_help = "Example: forebay load access.ndjson.gz --type access --refused refused.ndjson")]
    Load(Box<LoadFlags>),
    /// Sends events and measures throughput and response times
    ///
    /// Exits with 3 if a request got another status than 200, if an event isn't in the store exactly once, or if more than one in a hundred requests of
    /// --rate weren't sent in time.
    #[command(after_help = "Example: forebay bench --rate 20000 --duration 30s --verify forebay-data/events.db")]
    Bench(Box<BenchFlags>),
    /// Creates, lists and revokes tokens
    ///
    /// A token allows a client to post, read, administer or deliver. A running server notices a change within two seconds.
    #[command(subcommand, after_help = "Example: forebay token new shop --scope ingest --data /var/lib/forebay")]
    Token(TokenCommand),
    /// Lists complete examples, or writes one to a folder
    ///
    /// An example has a README, a configuration, schemas, test cases, and a script that posts events. The command replaces no existing file.
    #[command(after_help = "Example: forebay example\n         forebay example tokens-and-tls /tmp/try")]
    Example(ExampleFlags),
    /// Prints a script for shell completion of commands and flags
    #[command(after_help = "Example: forebay completions bash > ~/.local/share/bash-completion/completions/forebay")]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Writes the man pages, one for each command
    #[command(hide = true, after_help = "Example: forebay man ~/.local/share/man/man1")]
    Man {
        /// The folder to write to; the command creates it if it doesn't exist
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
}

/// Flags of every command that has a configuration.
#[derive(Clone, Debug, Args)]
pub struct Common {
    /// The configuration file (TOML); without one, events of any type are stored in events.db: by the process itself, or by a gateway's writer
    #[arg(long, value_name = "FILE", env = "FOREBAY_CONFIG", value_parser = path())]
    pub config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) data: Data,
    /// The address that accepts events [default: 127.0.0.1:8080] [env: FOREBAY_GATEWAY_LISTEN]
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// The address of metrics and the admin API [default: 127.0.0.1:9000] [env: FOREBAY_GATEWAY_ADMIN]
    #[arg(long, value_name = "ADDR")]
    admin: Option<String>,
    /// The lowest level of messages on stderr: debug, info, warning or error [default: info] [env: FOREBAY_LOG_LEVEL]
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<String>,
    #[arg(skip)]
    writers: Vec<String>,
    /// The role of the command; none if the command serves any role.
    #[arg(skip)]
    role: Option<Role>,
}

/// `forebay gateway`.
#[derive(Clone, Debug, Args)]
pub(crate) struct GatewayFlags {
    #[command(flatten)]
    common: Common,
    /// A writer's address, as http://127.0.0.1:8081; more than once for several [env: FOREBAY_WRITERS]
    #[arg(long = "writer", value_name = "URL")]
    writers: Vec<String>,
}

impl GatewayFlags {
    /// The same as flags of any role.
    pub(crate) fn into_common(self) -> Common {
        Common { writers: self.writers, ..self.common.of_role(Role::Gateway) }
    }
}

impl Common {
    /// The settings among the flags.
    #[must_use]
    pub fn flags(&self) -> Flags {
        Flags {
            listen: self.listen.clone(),
            admin: self.admin.clone(),
            log_level: self.log_level.clone(),
            writers: self.writers.clone(),
            role: self.role,
        }
    }

    /// Loads the configuration of a gateway, or of all in one process.
    ///
    /// # Errors
    /// Those of [`config::load`].
    pub fn load(&self, environment: &Environment) -> Result<(Configuration, Diagnostics), ConfigError> {
        config::load(self.config.as_deref(), environment, &self.flags(), &self.data.directory)
    }

    /// Loads the configuration of a writer.
    ///
    /// # Errors
    /// Those of [`config::load_writer`].
    pub fn load_writer(&self, environment: &Environment) -> Result<(WriterConfiguration, Diagnostics), ConfigError> {
        // Other commands have another default.
        if self.data.directory.as_path() == Path::new(WRITER_DATA) {
            let data = std::path::absolute(WRITER_DATA).unwrap_or_else(|_| WRITER_DATA.into());
            set_own_flags(|own| own.data = Some(data.to_string_lossy().into_owned()));
        }
        config::load_writer(self.config.as_deref(), environment, &self.flags(), &self.data.directory)
    }

    /// The data directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.data.directory
    }

    /// The role of the command; none if the command serves any role.
    #[must_use]
    pub const fn role(&self) -> Option<Role> {
        self.role
    }

    /// The same for the command of this role.
    pub(crate) fn of_role(self, role: Role) -> Self {
        Self { role: Some(role), ..self }
    }

    /// Warns if the working directory has a file of the usual name and no configuration is named. Its author may think that it is read.
    pub fn warn_of_overlooked(&self) {
        if self.config.is_none() && Path::new(USUAL_NAME).is_file() {
            tracing::warn!(
                "{USUAL_NAME} in this directory is not read: name it with --config {USUAL_NAME}, or move it away"
            );
        }
    }
}

/// The flag of every command that has a data directory.
#[derive(Clone, Debug, Args)]
pub(crate) struct Data {
    /// The data directory: journal, cursors, tokens, and the embedded store of `serve`
    #[arg(long = "data", value_name = "DIR", env = "FOREBAY_DATA", value_parser = path(), default_value = DATA)]
    pub(crate) directory: PathBuf,
}

/// The flags of every command that only needs to find the data directory and the tokens.
#[derive(Clone, Debug, Args)]
pub(crate) struct Place {
    /// The configuration file (TOML) of the server, which may name the data directory and the file of tokens
    #[arg(long, value_name = "FILE", env = "FOREBAY_CONFIG", value_parser = path())]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) data: Data,
}

impl Place {
    /// The data directory.
    pub(crate) fn directory(&self) -> &Path {
        &self.data.directory
    }
}

/// The commands for a journal.
#[derive(Debug, Subcommand)]
pub(crate) enum JournalCommand {
    /// Checks journals, dead letters, ids and state files for damage
    ///
    /// It only reads. Exits with 0 if nothing is wrong, and with 1 if anything is damaged or lost.
    #[command(after_help = "Example: forebay journal verify --data /var/lib/forebay")]
    Verify(Place),
    /// Prints the headers of all blocks and records as text
    #[command(after_help = "Example: forebay journal dump --data /var/lib/forebay | less")]
    Dump(Place),
    /// Writes all payloads as NDJSON
    #[command(after_help = "Example: forebay journal export --data /var/lib/forebay --output events.ndjson")]
    Export {
        #[command(flatten)]
        place: Place,
        /// The file to write; without one, or with -, payloads go to the standard output
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Sets damaged parts of the journal apart, to deliver all others
    ///
    /// Nothing is deleted: the damaged files are kept next to the journal.
    #[command(after_help = "Example: forebay journal repair --data /var/lib/forebay")]
    Repair(Place),
    /// Accepts that events are lost, so starts no longer report it
    ///
    /// The events stay counted as lost, and their positions are never used again.
    #[command(after_help = "Example: forebay journal accept-loss --data /var/lib/forebay")]
    AcceptLoss(Place),
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use config::OF_FLAGS;
    use text::{OperatorCommand, OwnFlags};

    fn parse(line: &str) -> Result<Command, clap::Error> {
        Cli::try_parse_from(line.split(' ')).map(Cli::into_command)
    }

    #[test]
    fn clap_definition_is_valid() {
        Cli::command().debug_assert();
    }

    #[test]
    fn serve_needs_no_name() {
        for line in ["forebay --listen 127.0.0.1:1", "forebay serve --listen 127.0.0.1:1"] {
            let Ok(Command::Serve(common)) = parse(line) else { panic!("{line}") };
            assert_eq!(common.flags().listen.as_deref(), Some("127.0.0.1:1"));
        }
        assert!(matches!(parse("forebay"), Ok(Command::Serve(_))));
        assert!(parse("forebay --listen 127.0.0.1:1 check").is_err());
    }

    /// Unknown ones would be reported as misspelt settings.
    #[test]
    fn variables_of_flags_are_known() {
        fn check(command: &clap::Command) {
            let variables = command.get_arguments().filter_map(|argument| argument.get_env()?.to_str());
            variables.for_each(|variable| assert!(OF_FLAGS.contains(&variable), "{variable}"));
            command.get_subcommands().for_each(check);
        }
        check(&Cli::command());
    }

    #[test]
    fn every_help_shows_an_example() {
        fn check(command: &mut clap::Command) {
            let help = command.render_long_help().to_string();
            assert!(help.contains("Example: forebay"), "{help}");
            command.get_subcommands_mut().filter(|command| command.get_name() != "help").for_each(check);
        }
        check(&mut Cli::command());
    }

    /// The words of a line without quotes, up to a pipe or a redirection.
    fn words(line: &str) -> Vec<&str> {
        line.split_whitespace().take_while(|word| !["|", ">"].contains(word)).collect()
    }

    #[test]
    fn every_example_is_a_command() {
        fn check(command: &clap::Command) {
            let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let lines = text
                .lines()
                .filter_map(|line| line.trim_start_matches("Example:").trim_start().strip_prefix("forebay "));
            for line in lines {
                let parsed = Cli::try_parse_from([&["forebay"], words(line).as_slice()].concat());
                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
            }
            command.get_subcommands().for_each(check);
        }
        check(&Cli::command());
    }

    #[test]
    fn every_command_in_messages_accepts_its_flags() {
        let own = ["/c", "/d", "http://127.0.0.1:1", "/ca", "/t", "/f"].map(|value| Some(value.to_owned()));
        let [config, data, admin, ca, token_file, tokens] = own;
        let own = OwnFlags { config, data, admin, ca, token_file, tokens };
        let origin = "2651fa944d608482855fec6e00000007";
        for command in [
            OperatorCommand::DeadList("s", Some("t")),
            OperatorCommand::DeadReplay("s", Some("t")),
            OperatorCommand::DeadDrop("s"),
            OperatorCommand::RouteList,
            OperatorCommand::RouteDrop("s"),
            OperatorCommand::RouteAccept("s"),
            OperatorCommand::JournalVerify,
            OperatorCommand::JournalRepair,
            OperatorCommand::JournalAcceptLoss,
            OperatorCommand::TokenNew("admin"),
            OperatorCommand::TokenNewAt("deliver", "/f"),
            OperatorCommand::TokenNewOf(origin),
            OperatorCommand::TokenList,
            OperatorCommand::Run("serve"),
            OperatorCommand::Run("gateway"),
            OperatorCommand::Run("writer"),
        ] {
            let line = command.with(&own);
            let parsed = Cli::try_parse_from(words(&line));
            assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
        }
        let shown = OperatorCommand::DeadShow("s").with(&own).replace("ID", "2651fa94-4d60-8482-855f-ec6e00000007");
        assert!(parse(&shown).is_ok(), "{shown}");
    }

    /// A page lists exactly the options that a command has.
    #[test]
    fn pages_name_the_options_that_there_are() {
        fn longs(command: &clap::Command) -> impl Iterator<Item = String> {
            command.get_arguments().filter_map(|argument| argument.get_long().map(|long| format!("--{long}")))
        }
        fn all(command: &clap::Command, known: &mut Vec<String>) {
            known.extend(longs(command).chain(["--help".to_owned(), "--version".to_owned()]));
            command.get_subcommands().for_each(|command| all(command, known));
        }
        let (cli, mut known) = (Cli::command(), Vec::new());
        all(&cli, &mut known);
        // Of every command that has a configuration: docs/reference/configuration/README.md.
        let common: Vec<String> = longs(&cli).collect();
        const CASES: &str = "test-a-configuration.md";
        for (name, page) in [("load", "load-files.md"), ("bench", "measure.md"), ("try", CASES), ("test", CASES)] {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides").join(page);
            let text = std::fs::read_to_string(path).unwrap();
            let named: Vec<&str> = text.split(|c: char| !c.is_ascii_lowercase() && c != '-').collect();
            let command = cli.find_subcommand(name).unwrap();
            for option in longs(command).filter(|option| !common.contains(option)) {
                assert!(named.contains(&option.as_str()), "{page} doesn't name {option} of {name}");
            }
            let is_option = |word: &&&str| word.len() > 2 && word.starts_with("--") && !word.starts_with("---");
            for option in named.iter().filter(is_option) {
                assert!(known.iter().any(|known| known == option), "{page} names {option}, which isn't there");
            }
        }
    }
}
