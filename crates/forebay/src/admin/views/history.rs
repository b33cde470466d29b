//! `GET /api/history?for=`: the figures of the last hour.

use std::time::Duration;

use hyper::StatusCode;
use text::duration;

use super::parameters::{Parameters, wrong};
use crate::admin::response::{AdminResponse, json};
use crate::overview::{KEPT_MAX, Overviews};

pub(super) fn respond(overviews: &Overviews, query: Option<&str>) -> AdminResponse {
    match Parameters::read(query, &["for"]).and_then(|parameters| time(&parameters)) {
        Ok(time) => json(StatusCode::OK, &overviews.history(time)),
        Err(refused) => refused,
    }
}

fn time(parameters: &Parameters<'_>) -> Result<Duration, AdminResponse> {
    let Some(text) = parameters.get("for") else { return Ok(KEPT_MAX) };
    let time = duration::parse(text).map_err(|error| wrong(format!("for={text}: {error}")))?;
    if time.is_zero() || time > KEPT_MAX {
        return Err(wrong(format!("for={text}: expected a duration up to 1h")));
    }
    Ok(time)
}
