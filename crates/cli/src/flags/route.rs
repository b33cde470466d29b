//! What can be typed after `forebay route`.

use clap::{Args, Subcommand};
use event::TypeName;

use super::{DeadAt, OutputFlags};

/// What can be done with routes.
#[derive(Debug, Subcommand)]
pub(crate) enum RouteCommand {
    /// Prints a table: type, sink and state of each, the numbers of events that are pending, stored, dead and skipped, and what is the matter
    #[command(after_help = "Example: forebay route list --data /var/lib/forebay")]
    List(RouteList),
    /// Gives up the events that routes to a sink hold, after they were taken out of the configuration
    ///
    /// These events are counted as skipped from then on, and the segments that were kept for them can be freed. A lane of the
    /// sink that has stopped because its store has lost events goes on with those that wait, without the lost ones.
    #[command(after_help = "Example: forebay route drop warehouse --data /var/lib/forebay")]
    Drop(RouteDrop),
    /// Lets stopped lanes of a sink accept what their store has, and go on
    ///
    /// A lane stops if its store and the journal disagree: another server has claimed it, the store has more than the journal ever had, or
    /// the store has lost events. That is so after a backup was restored. The lane takes the store for this server. What the store has of
    /// the journal's events counts as stored, and the others are delivered.
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
    /// Resend the events after the saved cursor, also those that the store may have
    #[arg(long)]
    pub(crate) resend: bool,
    /// The old name of `--resend`, accepted until 0.2
    #[arg(long, hide = true)]
    pub(crate) again: bool,
}
