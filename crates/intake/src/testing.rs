//! Drives an intake as the gateway does, for tests.

use std::sync::Arc;

use settings::{Diagnostics, Environment, Section, SettingsReader};
use toml::de::DeTable;

use crate::{
    Detail, Intake, IntakeCall, IntakeHead, IntakeKind, IntakeRoute, Problem, RecordPayload, RecordVerdict, Records,
    Reply, Stop, Verdicts,
};

/// A record as the pipeline would get it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The name of its type.
    pub type_name: String,
    /// Its id.
    pub id: Option<Vec<u8>>,
    /// Its payload, or why it is rejected.
    pub payload: Result<String, String>,
}

/// When requests of tests are received: 2026-11-28T12:00:00Z in microseconds.
pub const NOW: i64 = 1_795_867_200_000_000;

/// An intake with these settings, in TOML.
///
/// # Errors
/// The settings are invalid: the report.
///
/// # Panics
/// `settings` isn't TOML, or an error has no report.
pub fn configured(kind: &IntakeKind, settings: &str) -> Result<Arc<dyn Intake>, String> {
    let mut diagnostics = Diagnostics::new(|text, _| text.to_owned().into());
    let source = diagnostics.source("test", settings);
    let document = DeTable::parse(settings).expect("it is TOML");
    let environment = Environment::default();
    let mut reader = SettingsReader::new(&environment, diagnostics);
    let section = Section::root(source, document.get_ref());
    let intake = (kind.read)(&mut reader, &section);
    let report = reader.finish();
    assert_eq!(intake.is_some(), report.errors() == 0, "{}", report.render(false));
    intake.ok_or_else(|| report.render(false))
}

/// The head of a request; `target` has the path below the intake's root and a query.
#[must_use]
pub fn head<'a>(method: &'a str, target: &'a str, lines: &'a str) -> IntakeHead<'a> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    IntakeHead { method, path, query, target, lines: lines.as_bytes(), has_tls: false, received_at: NOW }
}

/// Header lines after a request line.
#[must_use]
pub fn lines(headers: &[(&str, &str)]) -> String {
    let lines = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
    format!("POST / HTTP/1.1\r\nhost: events.example\r\n{}\r\n", lines.collect::<String>())
}

/// The call of a request that posts records.
///
/// # Panics
/// It posts none.
#[must_use]
pub fn call(intake: &Arc<dyn Intake>, method: &str, target: &str, headers: &[(&str, &str)]) -> Box<dyn IntakeCall> {
    let lines = lines(headers);
    match intake.route(&head(method, target, &lines)) {
        IntakeRoute::Ingest(call) => call,
        route => unreachable!("{method} {target} has the route {route:?}"),
    }
}

/// The fixed response to a request.
///
/// # Panics
/// It has none.
#[must_use]
pub fn fixed(intake: &Arc<dyn Intake>, method: &str, target: &str, headers: &[(&str, &str)]) -> Reply {
    let lines = lines(headers);
    match intake.route(&head(method, target, &lines)) {
        IntakeRoute::Fixed(reply) | IntakeRoute::Free(reply) => reply,
        route => unreachable!("{method} {target} has the route {route:?}"),
    }
}

/// The records of a body.
///
/// # Errors
/// The request as a whole is rejected.
///
/// # Panics
/// A second pass differs from the first.
pub fn decode(call: &mut dyn IntakeCall, body: &[u8]) -> Result<Vec<Taken>, Problem> {
    let mut whole = Vec::new();
    match call.decode(body, &mut Records::new(0, usize::MAX, &mut |record| whole.push(Taken::of(record)))) {
        Ok(()) => {}
        Err(Stop::Rejected(problem)) => return Err(problem),
        Err(Stop::Paused) => unreachable!("there was room"),
    }
    // In pieces, as if memory were short.
    let mut pieces = Vec::new();
    loop {
        let skip = pieces.len();
        match call.decode(body, &mut Records::new(skip, 1, &mut |record| pieces.push(Taken::of(record)))) {
            Ok(()) => break,
            Err(Stop::Paused) => assert!(pieces.len() > skip, "no progress"),
            Err(Stop::Rejected(problem)) => unreachable!("the second pass was rejected: {problem:?}"),
        }
        if skip >= 100 {
            // Enough to know; what follows would take quadratic time.
            call.decode(body, &mut Records::new(0, usize::MAX, &mut |_| ())).expect("it was accepted before");
            return Ok(whole);
        }
    }
    assert_eq!(pieces, whole);
    Ok(whole)
}

/// The records of a body, and the response if those at `rejected` are rejected and the others are stored.
///
/// # Errors
/// The request as a whole is rejected; with the response.
pub fn post(call: &mut dyn IntakeCall, body: &[u8], rejected: &[usize]) -> Result<(Vec<Taken>, Reply), Reply> {
    let taken = decode(call, body).map_err(|problem| call.refusal(&problem))?;
    let mut verdicts = Verdicts::accepted(taken.len());
    for (index, record) in taken.iter().enumerate() {
        let planted = rejected.contains(&index).then(|| "the schema of the type".to_owned());
        if let Some(detail) = record.payload.as_ref().err().cloned().or(planted) {
            verdicts.reject(index, RecordVerdict::Rejected, || Detail { code: "schema", detail: detail.into() });
        }
    }
    let reply = call.response(&verdicts);
    Ok((taken, reply))
}

impl Taken {
    fn of(record: crate::IntakeRecord<'_>) -> Self {
        let payload = match record.payload {
            RecordPayload::Sent(bytes) => Ok(String::from_utf8_lossy(bytes).into_owned()),
            RecordPayload::Made(text) => {
                assert!(json::check(text.as_bytes()).is_ok(), "not JSON: {text}");
                Ok(text.into_owned())
            }
            RecordPayload::Rejected { detail, .. } => Err(detail.into_owned()),
        };
        Self { type_name: record.type_name.to_owned(), id: record.id.map(<[u8]>::to_vec), payload }
    }
}
