//! Codes of the admin port and of a writer's port: each in the code is on the page of errors with its status, and the reverse.
//! A test of the gateway compares the codes of the intake port.

use std::collections::BTreeMap;

use super::Finding;
use super::source::Source;

const ERRORS: &str = "docs/reference/errors.md";
/// The sections of the page, each with the folder of the code.
const PORTS: [(&str, &str); 2] =
    [("## Admin port", "crates/forebay/src/admin/"), ("## Writer port", "crates/writer/src/")];
const STATUS: &str = "StatusCode::";
/// Names of statuses, as the code writes them.
const STATUSES: &[(&str, u16)] = &[
    ("BAD_REQUEST", 400),
    ("UNAUTHORIZED", 401),
    ("FORBIDDEN", 403),
    ("NOT_FOUND", 404),
    ("METHOD_NOT_ALLOWED", 405),
    ("REQUEST_TIMEOUT", 408),
    ("CONFLICT", 409),
    ("LENGTH_REQUIRED", 411),
    ("PAYLOAD_TOO_LARGE", 413),
    ("UNSUPPORTED_MEDIA_TYPE", 415),
    ("UNPROCESSABLE_ENTITY", 422),
    ("TOO_MANY_REQUESTS", 429),
    ("INTERNAL_SERVER_ERROR", 500),
    ("NOT_IMPLEMENTED", 501),
    ("BAD_GATEWAY", 502),
    ("SERVICE_UNAVAILABLE", 503),
];

/// Status and code, each with the place where it is.
type Codes<'a> = BTreeMap<(u16, &'a str), (&'a Source, usize)>;

/// Codes that only the code or only the page has.
pub(super) fn undocumented_codes(sources: &[Source]) -> Vec<Finding> {
    let Some(page) = sources.iter().find(|source| source.path == ERRORS) else { return Vec::new() };
    PORTS.iter().flat_map(|(heading, folder)| differences(page, heading, folder, sources)).collect()
}

fn differences(page: &Source, heading: &str, folder: &str, sources: &[Source]) -> Vec<Finding> {
    let files = sources.iter().filter(|source| source.is_rust() && source.path.starts_with(folder));
    let (used, listed): (Codes<'_>, Codes<'_>) =
        (files.flat_map(codes_of_code).collect(), codes_of_page(page, heading));
    let missing = |(key, place): (&(u16, &str), &(&Source, usize)), from: &str| {
        let ((status, code), (source, line)) = (key, place);
        source.finding(*line, format!("{from} has no code `{code}` with the status {status}"))
    };
    let of_code = used.iter().filter(|(key, _)| !listed.contains_key(*key));
    let of_page = listed.iter().filter(|(key, _)| !used.contains_key(*key));
    let place = format!("{ERRORS}, \"{}\",", heading.trim_start_matches("## "));
    let of_code = of_code.map(|code| missing(code, &place));
    of_code.chain(of_page.map(|code| missing(code, folder))).collect()
}

/// Each status that is followed by the text of a code.
fn codes_of_code(source: &Source) -> Codes<'_> {
    let text = &source.text[..source.production().len()];
    let of = |(at, _): (usize, &str)| {
        let (name, rest) = text[at + STATUS.len()..].split_once(',')?;
        let (code, _) = rest.trim_start().strip_prefix('"')?.split_once('"')?;
        let is_code = !code.is_empty() && code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        let (_, status) = STATUSES.iter().find(|(known, _)| *known == name).filter(|_| is_code)?;
        Some(((*status, code), (source, text[..at].matches('\n').count() + 1)))
    };
    text.match_indices(STATUS).filter_map(of).collect()
}

/// The rows of a section, as `| 404 | `path` | … |`.
fn codes_of_page<'a>(page: &'a Source, heading: &str) -> Codes<'a> {
    let lines = (1..).zip(page.text.lines()).skip_while(|(_, line)| *line != heading).skip(1);
    let section = lines.take_while(|(_, line)| !line.starts_with("## "));
    let rows = section.filter_map(|(number, line)| {
        let (status, rest) = line.strip_prefix("| ")?.split_once(" | `")?;
        Some(((status.parse().ok()?, rest.split_once('`')?.0), (page, number)))
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_of_one_side_is_found() {
        let code = "fn a() { problem(StatusCode::NOT_FOUND, \"path\", x); problem(\n    StatusCode::CONFLICT,\n    \"held\",\n); \
                    text(StatusCode::NOT_FOUND, \"no such path\") }\n";
        let page = "# Errors\n\n| 400 | `json` | of the intake |\n\n## Admin port\n\n| 404 | `path` | a |\n| 404 | `held` | b |\n\n\
                    ## Writer port\n\n| 503 | `protocol` | c |\n";
        let sources = [
            Source::new(ERRORS, page.into()),
            Source::new("crates/forebay/src/admin/a.rs", code.into()),
            Source::new(
                "crates/writer/src/a.rs",
                "fn a() { new(StatusCode::SERVICE_UNAVAILABLE, \"protocol\") }".into(),
            ),
        ];
        let findings = undocumented_codes(&sources);
        let places: Vec<_> = findings.iter().map(|finding| (finding.path.as_str(), finding.line)).collect();
        assert_eq!(places, [("crates/forebay/src/admin/a.rs", 2), (ERRORS, 8)], "{findings:?}");
    }
}
