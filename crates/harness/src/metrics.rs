//! Reads the metrics of the server's admin port in the classic text format.

/// The sum over all series of a metric, 0 if there is none.
pub fn sum(text: &str, name: &str) -> f64 {
    let series = text.lines().filter_map(|line| line.strip_prefix(name));
    let values = series.filter(|rest| rest.starts_with(['{', ' '])).filter_map(|rest| rest.rsplit(' ').next());
    values.filter_map(|value| value.parse::<f64>().ok()).sum()
}

/// The sum over those series of a metric that have this label, as `type="access"`; 0 if there is none.
pub fn sum_with(text: &str, name: &str, label: &str) -> f64 {
    let own = text.lines().filter(|line| line.contains(label)).collect::<Vec<_>>().join("\n");
    sum(&own, name)
}

/// Whether a metric has a series at all.
pub fn has(text: &str, name: &str) -> bool {
    text.lines().any(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' '])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_are_added_up() {
        let text = "# TYPE pending gauge\npending{type=\"a b\",sink=\"x\"} 3\npending{type=\"b\",sink=\"x\"} 4.5\n\
                    pending_bytes 9\nidle 1\n";
        assert!((sum(text, "pending") - 7.5).abs() < 1e-9);
        assert!((sum_with(text, "pending", "type=\"b\"") - 4.5).abs() < 1e-9);
        assert!(has(text, "pending") && has(text, "idle") && !has(text, "pend") && !has(text, "TYPE"));
    }
}
