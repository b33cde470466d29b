//! `/api/log`: the last lines of the log, and another level for some time.

use std::time::Duration;

use config::LogLevel;
use hyper::body::Incoming;
use hyper::{Method, Request, StatusCode};
use text::rfc3339;

use super::super::is_read;
use super::super::payload::read_small;
use super::super::response::{AdminResponse, json, not_allowed, problem};
use crate::actions::Actions;
use crate::caller::Caller;
use crate::log::{self, UNLIMITED};
use admin_api::log::{LogChangeJson, LogJson};

/// Bytes of a change.
const CHANGE_BYTES_MAX: usize = 4_096;
/// How long another level may last, if an operator forgets it.
const DURATION_MAX: Duration = Duration::from_hours(24);

/// Answers a request to the path.
pub(super) async fn respond(request: &mut Request<Incoming>, by: (&Caller, &Actions)) -> AdminResponse {
    match request.method() {
        method if is_read(method) => json(StatusCode::OK, &shown(Some(log::recent()))),
        &Method::PUT => change(request, by).await.unwrap_or_else(|refused| refused),
        _ => not_allowed("GET, HEAD, PUT"),
    }
}

async fn change(
    request: &mut Request<Incoming>,
    (caller, actions): (&Caller, &Actions),
) -> Result<AdminResponse, AdminResponse> {
    let body = read_small(request.body_mut(), CHANGE_BYTES_MAX).await?;
    let (level, duration) = parse(&body).map_err(|detail| problem(StatusCode::BAD_REQUEST, "body", detail))?;
    let shown_duration = humantime::format_duration(duration);
    tracing::info!(
        target: UNLIMITED, by = %caller, log_level = level.name(), duration = %shown_duration,
        "log level changed for some time"
    );
    log::choose(level, duration);
    actions.record(caller, "log level", level.name().to_owned(), format!("for {shown_duration}"));
    Ok(json(StatusCode::OK, &shown(None)))
}

fn parse(body: &[u8]) -> Result<(LogLevel, Duration), String> {
    let LogChangeJson { level, duration } = serde_json::from_slice(body)
        .map_err(|error| format!("send {{\"level\": \"debug\", \"for\": \"10m\"}} as the body: {error}"))?;
    let level = LogLevel::named(&level).ok_or("the levels are debug, info, warning and error")?;
    let parsed = humantime::parse_duration(&duration).ok();
    let parsed = parsed.filter(|duration| !duration.is_zero() && *duration <= DURATION_MAX);
    Ok((level, parsed.ok_or("`for` must be a duration as 10m, up to 24h")?))
}

fn shown(lines: Option<Vec<String>>) -> LogJson {
    let levels = log::levels();
    LogJson {
        level: levels.now().name().to_owned(),
        configured: levels.configured.name().to_owned(),
        until: levels.other.map(|(_, until)| rfc3339::format_short(until - until.rem_euclid(1_000_000))),
        lines,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn change_needs_a_level_and_a_bounded_time() {
        let minutes = Duration::from_mins;
        assert_eq!(parse(br#"{"level":"debug","for":"90m"}"#), Ok((LogLevel::Debug, minutes(90))));
        assert_eq!(parse(br#"{"level":"warning"}"#), Ok((LogLevel::Warning, minutes(10))));
        for (body, wanted) in [
            (r#"{"level":"trace"}"#, "the levels are"),
            (r#"{"level":"debug","for":"25h"}"#, "up to 24h"),
            (r#"{"level":"debug","for":"0s"}"#, "up to 24h"),
            (r#"{"level":"debug","for":"soon"}"#, "up to 24h"),
            (r#"{"level":"debug","until":"1h"}"#, "unknown field"),
            ("debug", "as the body"),
        ] {
            let refused = parse(body.as_bytes()).unwrap_err();
            assert!(refused.contains(wanted), "{body}: {refused}");
        }
    }
}
