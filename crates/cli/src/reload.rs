//! `forebay reload`: reloads the configuration of a running server, and shows the result.

use std::io::Write;

use anyhow::bail;
use config::Role;
use settings::Environment;

use crate::EXIT_CONFIGURATION;
use crate::admin_client::AdminClient;
use crate::flags::ReloadFlags;
use crate::output::{print, print_error};
use admin_api::paths::RELOAD;
use admin_api::reload::ReloadJson;

/// Asks the server, and returns the exit code.
///
/// # Errors
/// The server can't be asked, rejects the request, or could not apply a valid configuration.
pub(crate) fn run(flags: &ReloadFlags, role: Option<Role>, environment: &Environment) -> anyhow::Result<u8> {
    if role == Some(Role::Writer) {
        bail!("a writer doesn't reload its configuration. Restart it: gateways use another writer or wait.");
    }
    let server = AdminClient::find(&flags.at, Role::Serve, environment)?;
    // Each store that is new gets its time to answer.
    match server.ask("POST", RELOAD, &[], None)? {
        Ok(reloaded) => {
            let text = if flags.output.is_json() { serde_json::to_string(&reloaded)? + "\n" } else { text(&reloaded) };
            print(|output| output.write_all(text.as_bytes()))?;
            if let Some(warnings) = reloaded.warnings {
                print_error(&warnings)?;
            }
            Ok(0)
        }
        Err(problem) if problem.code == "configuration" => {
            if flags.output.is_json() {
                print(|output| writeln!(output, "{}", serde_json::to_string(&problem)?))?;
            } else {
                print_error(&problem.detail)?;
            }
            tracing::error!(
                "nothing has changed: the server keeps its current configuration. Correct the errors and reload again"
            );
            Ok(EXIT_CONFIGURATION)
        }
        Err(problem) => Err(server.refused(problem)),
    }
}

fn text(reloaded: &ReloadJson) -> String {
    let ReloadJson { file, changes, .. } = reloaded;
    let of =
        file.as_deref().map_or_else(|| "the environment and flags (there is no file)".into(), text::escape_control);
    let changes = if changes.is_empty() { "nothing has changed".to_owned() } else { changes.join("\n") };
    format!("reloaded {of}\n{changes}\n")
}
