//! The command line of `forebay route`.

use clap::{Args, Subcommand};
use event::TypeName;

use super::{DeadAt, OutputFlags};

/// The commands for routes.
#[derive(Debug, Subcommand)]
pub(crate) enum RouteCommand {
    /// Lists routes with their states, counts and problems
    #[command(after_help = "Example: forebay route list --data /var/lib/forebay")]
    List(RouteList),
    /// Discards the backlog of a sink's removed routes
    ///
    /// These events are counted as skipped from then on, and Forebay can free their segments. If a lane of the sink has stopped because its store has
    /// lost events, it resumes with the events that wait, without the lost ones.
    #[command(after_help = "Example: forebay route drop warehouse --data /var/lib/forebay")]
    Drop(RouteDrop),
    /// Resumes a sink's stopped lanes from the store's cursor
    ///
    /// A lane stops if its store and the journal disagree: another server has claimed it, the store has more than the journal ever had, or
    /// the store has lost events. That happens after a restore from a backup. The lane claims the store for this server. Events of the journal that
    /// the store has count as stored, and the lane delivers the others.
    #[command(after_help = "Example: forebay route accept warehouse --data /var/lib/forebay")]
    Accept(RouteAccept),
}

/// `forebay route list`.
#[derive(Clone, Debug, Args)]
pub(crate) struct RouteList {
    #[command(flatten)]
    pub(crate) at: DeadAt,
    #[command(flatten)]
    pub(crate) output: OutputFlags,
}

/// `forebay route drop`.
#[derive(Clone, Debug, Args)]
pub(crate) struct RouteDrop {
    /// The sink's name
    pub(crate) sink: String,
    #[command(flatten)]
    pub(crate) at: DeadAt,
    /// Only the route from this type
    #[arg(long = "type", value_name = "TYPE", value_parser = |text: &str| TypeName::new(text))]
    pub(crate) type_name: Option<TypeName>,
}

/// `forebay route accept`.
#[derive(Clone, Debug, Args)]
pub(crate) struct RouteAccept {
    /// The sink's name
    pub(crate) sink: String,
    #[command(flatten)]
    pub(crate) at: DeadAt,
    /// Resend the journal's events after the saved cursor, also those that the store may have
    #[arg(long)]
    pub(crate) resend: bool,
}
