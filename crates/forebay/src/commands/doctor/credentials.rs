//! Checks of what ends: tokens and certificates.

use std::path::Path;

use config::port::tls_files;
use net::tls::end_of_certificate;
use text::{counted, rfc3339};

use super::check::Check;
use super::subject::Subject;

const TOKEN: &str = "token";
const CERTIFICATE: &str = "certificate";
/// Microseconds of a day.
const DAY: i64 = 86_400 * 1_000_000;
/// A token that ends within so many days is reported.
const TOKEN_DAYS: i64 = 7;
/// The same of a certificate: tools that renew them do so earlier.
const CERTIFICATE_DAYS: i64 = 14;

/// Checks tokens and certificates. `now` is in microseconds.
pub(super) fn checks(subject: &Subject, now: i64) -> Vec<Check> {
    let certificates = subject.certificates.iter().map(|(table, path)| certificate(path, now).about(table));
    tokens(subject, now).into_iter().chain(certificates).collect()
}

fn tokens(subject: &Subject, now: i64) -> Vec<Check> {
    let kept = match subject.tokens.read() {
        Ok(Some(kept)) => kept,
        Ok(None) => return vec![Check::ok(TOKEN, "there are no tokens")],
        Err(error) => return vec![Check::skipped(TOKEN, error.to_string())],
    };
    let remedy = "Create another token with the same scopes, give it to its client, and revoke this one";
    let ends = kept.tokens.iter().filter_map(|token| Some((token.name.to_string(), token.expires?)));
    let mut checks: Vec<_> = ends
        .filter(|(_, end)| *end < now.saturating_add(TOKEN_DAYS * DAY))
        .map(|(name, end)| Check::warning(TOKEN, ends_at(end, now), remedy).about(name))
        .collect();
    if checks.is_empty() {
        let count = counted(kept.tokens.len() as u64, "token");
        checks.push(Check::ok(TOKEN, format!("{count}, none of which expires within {TOKEN_DAYS} days")));
    }
    checks
}

fn certificate(path: &Path, now: i64) -> Check {
    let shown = path.display();
    let end = match tls_files::read(path) {
        Err(error) => return Check::skipped(CERTIFICATE, format!("{shown} can't be read: {error}")),
        Ok(pem) => end_of_certificate(&pem),
    };
    let remedy = "Renew the certificate: Forebay notices the new file";
    match end {
        Err(error) => Check::problem(CERTIFICATE, format!("{shown}: {error}"), remedy),
        Ok(end) if end <= now => Check::problem(CERTIFICATE, format!("{shown} {}", ends_at(end, now)), remedy),
        Ok(end) if end < now.saturating_add(CERTIFICATE_DAYS * DAY) => {
            Check::warning(CERTIFICATE, format!("{shown} {}", ends_at(end, now)), remedy)
        }
        Ok(end) => Check::ok(CERTIFICATE, format!("{shown} {}", ends_at(end, now))),
    }
}

fn ends_at(end: i64, now: i64) -> String {
    let (at, left) = (rfc3339::format(end), (end - now) / (DAY / 24));
    match left {
        _ if end <= now => format!("has expired at {at}"),
        ..48 => format!("expires in {left} hours, at {at}"),
        _ => format!("expires in {} days, at {at}", left / 24),
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::State;
    use super::*;

    #[test]
    fn certificate_is_reported_before_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tls.pem");
        let mut parameters = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
        parameters.not_after = rcgen::date_time_ymd(2031, 5, 17);
        let pem = parameters.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap().pem();
        std::fs::write(&path, pem).unwrap();
        let end = rfc3339::parse("2031-05-17T00:00:00Z").unwrap();
        let state = |days: i64| certificate(&path, end - days * DAY).state;
        assert_eq!(
            [15, 13, 1, 0, -1].map(state),
            [State::Ok, State::Warning, State::Warning, State::Problem, State::Problem]
        );
        let tomorrow = certificate(&path, end - DAY).seen;
        assert!(tomorrow.ends_with("tls.pem expires in 24 hours, at 2031-05-17T00:00:00.000000Z"), "{tomorrow}");
        assert_eq!(certificate(&folder.path().join("none"), 0).state, State::Skipped);
        std::fs::write(&path, "no certificate").unwrap();
        assert_eq!(certificate(&path, 0).state, State::Problem);
    }
}
