//! Requests as exporters send them, and their responses.

mod fuzz;
mod logs;
mod metrics;
mod responses;
mod spans;

use std::sync::Arc;

use super::Otlp;
use crate::testing::{Taken, call, post};
use crate::{Intake, Reply};

const PROTOBUF: [(&str, &str); 1] = [("content-type", "application/x-protobuf")];
const JSON: [(&str, &str); 1] = [("content-type", "application/json; charset=utf-8")];

fn send(target: &str, headers: &[(&str, &str)], body: &[u8]) -> (Vec<Taken>, Reply) {
    let intake: Arc<dyn Intake> = Arc::new(Otlp);
    post(&mut *call(&intake, "POST", target, headers), body, &[]).unwrap()
}

/// The payload of the only record of a request in JSON, or why it is rejected.
fn only(target: &str, body: &str) -> Result<String, String> {
    let (taken, _) = send(target, &JSON, body.as_bytes());
    assert_eq!(taken.len(), 1, "{body}");
    taken[0].payload.clone()
}
