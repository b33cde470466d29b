//! Metrics that pages name: each is on the page of metrics, which a test of the server compares with what it exposes.

use std::collections::BTreeSet;

use super::Finding;
use super::source::Source;

/// The page with all metrics.
const METRICS: &str = "docs/reference/metrics.md";
/// Names of tables, secrets and volumes that pages have.
const NO_METRICS: &[&str] = &[
    "forebay_cursors",
    "forebay_mark",
    "forebay_postgres_password",
    "forebay_revisions",
    "forebay_tokens",
    "forebay_writers_token",
];
/// What the exposition adds to the name of a histogram.
const SERIES: &[&str] = &["_bucket", "_count", "_sum"];

/// Metrics that pages name and Forebay doesn't have.
pub(super) fn unknown_metrics(sources: &[Source]) -> Vec<Finding> {
    let Some(page) = sources.iter().find(|source| source.path == METRICS) else { return Vec::new() };
    let known: BTreeSet<&str> = names(&page.text).collect();
    let pages = sources.iter().filter(|source| source.path.ends_with(".md") && source.path != METRICS);
    pages.flat_map(|page| unknown_of(page, &known)).collect()
}

fn unknown_of(page: &Source, known: &BTreeSet<&str>) -> Vec<Finding> {
    let lines = (1..).zip(page.text.lines());
    let named = lines.flat_map(|(number, line)| names(line).map(move |name| (number, name)));
    let unknown = named.filter(|(_, name)| !is_known(name, known));
    unknown.map(|(line, name)| page.finding(line, format!("{METRICS} has no metric `{name}`"))).collect()
}

fn is_known(name: &str, known: &BTreeSet<&str>) -> bool {
    let is_series = || SERIES.iter().any(|series| name.strip_suffix(series).is_some_and(|name| known.contains(name)));
    // A search for several, as in `grep forebay_events`.
    let is_beginning = || known.iter().any(|known| known.strip_prefix(name).is_some_and(|rest| rest.starts_with('_')));
    NO_METRICS.contains(&name) || known.contains(name) || is_series() || is_beginning()
}

fn names(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|character: char| !character.is_ascii_alphanumeric() && character != '_');
    // Names of packages have a version, or a placeholder in capitals.
    let is_name = |word: &&str| {
        let rest =
            word.strip_prefix("forebay_").filter(|rest| !rest.starts_with(|letter: char| letter.is_ascii_digit()));
        rest.is_some_and(|rest| !rest.contains(|letter: char| letter.is_ascii_uppercase()))
    };
    words.filter(is_name).map(|word| word.trim_end_matches('_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_metric_of_a_page_is_found() {
        let metrics = Source::new(METRICS, "| `forebay_events_dead_total{sink}` |\n| `forebay_ack_seconds` |\n".into());
        let text = "`forebay_events_dead_total`, forebay_ack_seconds_bucket\n`forebay_events_died_total{sink=\"a\"} > 0`\n\
                    grep forebay_events\ntable `forebay_mark` of forebay_0.1.0_amd64.deb\n`forebay_even`\n";
        let findings = unknown_metrics(&[metrics, Source::new("docs/a.md", text.into())]);
        assert_eq!(findings.iter().map(|finding| finding.line).collect::<Vec<_>>(), [2, 5]);
    }
}
