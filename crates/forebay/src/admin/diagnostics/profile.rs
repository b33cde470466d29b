//! `POST /debug/profile` and `POST /debug/heap`: where CPU time goes, and what allocates memory.

use std::io;
use std::ops::RangeInclusive;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::{Method, Request, StatusCode};
use profile::{Format, Profile, ProfileError};

use crate::actions::Actions;
use crate::admin::response::{AdminResponse, not_allowed, problem};
use crate::caller::Caller;
use crate::log::UNLIMITED;
use admin_api::query::pairs;

const SECONDS: RangeInclusive<u64> = 1..=60;
const SECONDS_DEFAULT: u64 = 10;

/// Takes samples until the time is over, or the sender is dropped.
type Sampler = fn(Duration, &Receiver<()>) -> Result<Profile, ProfileError>;

/// The answer: a profile, after so many seconds as the query says. It ends early when the client disconnects.
pub(super) async fn respond(
    request: &Request<Incoming>,
    (caller, actions): (&Caller, &Actions),
    sampler: Sampler,
) -> AdminResponse {
    if *request.method() != Method::POST {
        return not_allowed("POST");
    }
    let (seconds, format) = match options(request.uri().query().unwrap_or_default()) {
        Ok(options) => options,
        Err(detail) => return problem(StatusCode::BAD_REQUEST, "query", detail),
    };
    tracing::info!(target: UNLIMITED, by = %caller, seconds, "profile requested: {}", request.uri().path());
    // First: the result goes to the client, which may leave before the end.
    actions.record(caller, "profile", request.uri().path().to_owned(), format!("{seconds} s"));
    let (stop, stopped) = channel();
    let sampled = tokio::task::spawn_blocking(move || {
        let profile = sampler(Duration::from_secs(seconds), &stopped)?;
        Ok(profile.write(format, concat!("Forebay ", env!("CARGO_PKG_VERSION"))))
    });
    let sampled = sampled.await;
    drop(stop);
    match sampled.unwrap_or_else(|error| Err(ProfileError::Timer(io::Error::other(error)))) {
        Ok(profile) => {
            AdminResponse { content_type: content_type(format), ..AdminResponse::text(StatusCode::OK, profile) }
        }
        Err(error @ ProfileError::Busy) => problem(StatusCode::CONFLICT, "profile", error.to_string()),
        Err(error @ ProfileError::Timer(_)) => problem(StatusCode::NOT_IMPLEMENTED, "profile", error.to_string()),
    }
}

const fn content_type(format: Format) -> &'static str {
    match format {
        Format::Svg => "image/svg+xml",
        Format::Pprof => "application/gzip",
        Format::Folded => "text/plain; charset=utf-8",
    }
}

/// The seconds and the format of a query, or its error.
fn options(query: &str) -> Result<(u64, Format), String> {
    let (mut seconds, mut format) = (SECONDS_DEFAULT, Format::default());
    for pair in pairs(query) {
        let (key, value) = pair?;
        match key {
            "seconds" => {
                let number = value.parse().ok().filter(|seconds| SECONDS.contains(seconds));
                seconds = number.ok_or_else(|| {
                    format!("seconds={value}: expected a number from {} to {}", SECONDS.start(), SECONDS.end())
                })?;
            }
            "format" => {
                format = value.parse().map_err(|()| format!("format={value}: expected svg, pprof or folded"))?;
            }
            _ => return Err(format!("unknown parameter {key}: use seconds or format")),
        }
    }
    Ok((seconds, format))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_has_seconds_and_format() {
        assert_eq!(options(""), Ok((10, Format::Svg)));
        assert_eq!(options("format=pprof&seconds=60"), Ok((60, Format::Pprof)));
        assert_eq!(options("seconds=1&format=folded"), Ok((1, Format::Folded)));
        for (query, wanted) in [
            ("seconds=0", "seconds=0: expected a number from 1 to 60"),
            ("seconds=61", "1 to 60"),
            ("seconds=x", "1 to 60"),
            ("format=png", "svg, pprof or folded"),
            ("second=1", "unknown parameter second: use seconds or format"),
            ("seconds=%f", "percent-encoded"),
        ] {
            let wrong = options(query).unwrap_err();
            assert!(wrong.contains(wanted), "{wrong}");
        }
    }
}
