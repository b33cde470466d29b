//! Asks the running process about itself, if there is one.

use std::time::Duration;

use admin_api::paths;
use admin_api::status::StatusJson;
use cli::AdminPort;
use config::Role;
use serde::Serialize;

use super::check::{Check, State};
use super::limits::Limits;

const PROCESS: &str = "process";
/// The limit of each request.
const LIMIT: Duration = Duration::from_secs(5);

/// The process that answers.
#[derive(Debug, Serialize)]
pub(super) struct Process {
    address: String,
    role: String,
    version: String,
    started: String,
    gateway_id: Option<String>,
}

/// What it says.
#[derive(Debug, Default)]
pub(super) struct Answers {
    pub(super) process: Option<Process>,
    /// Its limits, if it shows its metrics.
    pub(super) limits: Option<Limits>,
    pub(super) checks: Vec<Check>,
}

/// Asks the process of this role. It blocks.
pub(super) fn ask(admin: &AdminPort, role: Role) -> Answers {
    let address = admin.address();
    let own = "limits are those of this command";
    let status = match admin.ask("GET", paths::STATUS, LIMIT) {
        Ok(answer) if answer.status == 200 => answer,
        Ok(answer) => {
            let why = match answer.status {
                401 | 403 => {
                    "the request needs a token with the scope read or admin: set FOREBAY_TOKEN_FILE".to_owned()
                }
                status => format!("it responded with {status}"),
            };
            return Answers {
                checks: vec![Check::skipped(PROCESS, format!("{address}: {why}; {own}"))],
                ..Answers::default()
            };
        }
        Err(error) => {
            let why = format!("no process answers at {address} ({error}); {own}");
            return Answers { checks: vec![Check::skipped(PROCESS, why)], ..Answers::default() };
        }
    };
    let Ok(status) = serde_json::from_slice::<StatusJson>(&status.body) else {
        let why = format!("{address} isn't the admin port of this version of Forebay; {own}");
        return Answers { checks: vec![Check::skipped(PROCESS, why)], ..Answers::default() };
    };
    let metrics = admin.ask("GET", paths::METRICS, LIMIT).ok().filter(|answer| answer.status == 200);
    let limits = metrics.map(|answer| Limits::of_metrics(&answer.text()));
    let checks = checks(&status, role, &address);
    let StatusJson { role, version, started, gateway_id, .. } = status;
    Answers { process: Some(Process { address, role, version, started, gateway_id }), limits, checks }
}

fn checks(status: &StatusJson, role: Role, address: &str) -> Vec<Check> {
    let StatusJson { role: own_role, version, started, .. } = status;
    let mut checks = Vec::new();
    let id = status.gateway_id.as_ref().map_or_else(String::new, |id| format!(", gateway id {id}"));
    let seen = format!("{own_role} {version} answers at {address}, started at {started}{id}");
    if own_role == role.name() {
        checks.push(Check::ok(PROCESS, seen));
    } else {
        let remedy = format!("Name its role with --role {own_role}, or the admin address of the {}", role.name());
        checks.push(Check::warning(PROCESS, seen, remedy));
    }
    let problem = |text: &String| Check::of_sentences(PROCESS, State::Problem, text, "`forebay status` shows more");
    checks.extend(status.problems.iter().map(problem));
    let finding = |text: &str| Check::of_sentences(PROCESS, State::Warning, text, "`forebay status` shows more");
    checks.extend(status.findings.iter().map(|finding_of| finding(&finding_of.text)));
    checks
}
