//! `forebay log`: the last lines of a running process's log, and another level for some time.

use std::io::Write;
use std::time::Duration;

use config::Role;
use settings::Environment;

use crate::admin_client::AdminClient;
use crate::flags::LogFlags;
use crate::output::print;
use admin_api::log::{LogChangeJson, LogJson, usual_duration};
use admin_api::paths::LOG;

/// Each step of a request.
const LIMIT: Duration = Duration::from_secs(10);

/// Asks the process of the flags' role, or else of `role`, and returns the exit code.
///
/// # Errors
/// The process can't be asked, or rejects the request.
pub(crate) fn run(flags: &LogFlags, role: Option<Role>, environment: &Environment) -> anyhow::Result<u8> {
    let process = AdminClient::find(&flags.at, flags.role.or(role).unwrap_or(Role::Serve), environment)?;
    let (method, body) = match &flags.level {
        Some(level) => {
            let duration = flags.duration.clone().unwrap_or_else(usual_duration);
            ("PUT", serde_json::to_vec(&LogChangeJson { level: level.clone(), duration })?)
        }
        None => ("GET", Vec::new()),
    };
    let log: LogJson = process.ask(method, LOG, &body, Some(LIMIT))?.map_err(|problem| process.refused(problem))?;
    let text = if flags.output.is_json() { serde_json::to_string(&log)? + "\n" } else { shown(&log) };
    print(|output| output.write_all(text.as_bytes()))?;
    Ok(0)
}

fn shown(LogJson { level, configured, until, lines }: &LogJson) -> String {
    match (lines, until) {
        // Nothing in a line is obeyed by the terminal: the process has escaped it.
        (Some(lines), _) => lines.iter().map(|line| format!("{}\n", text::escape_control(line))).collect(),
        (None, Some(until)) => format!("the log has the level {level} until {until}, and then {configured}\n"),
        (None, None) => format!("the log has the level {level}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_shown_unchanged_and_harmless() {
        let lines = ["2026-11-21T10:00:02.000Z INFO  started", "a\u{1b}[31m"].map(str::to_owned).to_vec();
        let log =
            LogJson { level: "debug".into(), configured: "info".into(), until: Some("T".into()), lines: Some(lines) };
        assert_eq!(shown(&log), "2026-11-21T10:00:02.000Z INFO  started\na\\u001b[31m\n");
        let changed = LogJson { lines: None, ..log };
        assert_eq!(shown(&changed), "the log has the level debug until T, and then info\n");
    }
}
