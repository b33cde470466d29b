//! Counts look-ups, and logs changes and the first failure of several.

use sink::remote::Upstream;

use crate::log;

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
        let (name, service) = (&self.upstream.config().name, self.service);
        if has_changed {
            let list: Vec<String> = self.upstream.servers().iter().map(|server| server.label()).collect();
            log::info(format_args!("upstream {name}: {service} names {} writers: {}", list.len(), list.join(", ")));
        } else if self.has_failed {
            log::info(format_args!("upstream {name}: {service} answers again"));
        }
        self.has_failed = false;
    }

    /// The answer named no writer, or there was none. The upstream keeps its writers.
    pub(super) fn failed(&mut self, reason: &str) {
        self.upstream.lookups().failed.add(1);
        if !self.has_failed {
            let (name, service) = (&self.upstream.config().name, self.service);
            let message = "the last known writers stay in use, and the look-up is repeated";
            log::warning(format_args!("upstream {name}: {service} names no writers: {reason}; {message}"));
        }
        self.has_failed = true;
    }
}
