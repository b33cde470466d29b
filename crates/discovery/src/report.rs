//! Counts look-ups, and logs changes and the first failure of several.

use sink_remote::Upstream;

/// The number of writers or registrations that one log line names.
const NAMED_MAX: usize = 10;

/// The look-ups of one upstream.
pub(super) struct LookUpReport {
    upstream: Upstream,
    /// The service that the upstream uses.
    service: &'static str,
    has_failed: bool,
}

impl LookUpReport {
    pub(super) fn new(upstream: &Upstream, service: &'static str) -> Self {
        Self { upstream: upstream.clone(), service, has_failed: false }
    }

    /// The answer named writers, which the upstream now uses.
    pub(super) fn resolved(&mut self, has_changed: bool) {
        self.upstream.lookups().resolved.add(1);
        let (upstream, service) = (&*self.upstream.config().name, self.service);
        if has_changed {
            let labels: Vec<String> = self.upstream.servers().iter().map(|server| server.label()).collect();
            let noun = if labels.len() == 1 { "writer" } else { "writers" };
            let list = listed(&labels, ", ");
            tracing::info!(upstream, "{service} returned {} {noun}: {list}", labels.len());
        } else if self.has_failed {
            tracing::info!(upstream, "{service} responds again");
        } else {
            tracing::debug!(upstream, servers = self.upstream.servers().len(), "{service} returned the same writers");
        }
        self.has_failed = false;
    }

    /// The answer named no writer, or there was none. The upstream keeps its writers.
    pub(super) fn failed(&mut self, reason: &str) {
        self.upstream.lookups().failed.add(1);
        if !self.has_failed {
            let (upstream, service) = (&*self.upstream.config().name, self.service);
            let message = "the last known writers stay in use, and the look-up is repeated";
            tracing::warn!(upstream, reason, "{service} returned no writers: {message}");
        } else {
            let (upstream, service) = (&*self.upstream.config().name, self.service);
            tracing::debug!(upstream, reason, "{service} returned no writers again");
        }
        self.has_failed = true;
    }
}

/// The first few items, and the number of the others.
pub(super) fn listed(items: &[String], separator: &str) -> String {
    let named = items.iter().take(NAMED_MAX).map(String::as_str).collect::<Vec<_>>().join(separator);
    let others = items.len().saturating_sub(NAMED_MAX);
    if others == 0 { named } else { format!("{named}{separator}and {others} more") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_line_names_ten_items_and_counts_the_others() {
        let items: Vec<String> = (0..12).map(|number| format!("w{number}")).collect();
        assert_eq!(listed(&items[..1], ", "), "w0");
        assert!(listed(&items[..10], ", ").ends_with(", w8, w9"));
        assert!(listed(&items, "; ").ends_with("; w8; w9; and 2 more"));
    }
}
