//! The overview of a writer.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use admin_api::overview::{OverviewJson, SinkRateJson};
use eventlog::unix_microseconds;
use text::rfc3339;
use writer::Writer;

use super::OverviewSource;
use super::sample::{RateSample, SinkSample};
use crate::findings::Findings;
use crate::offered_status;
use config::Role;

/// The sources of a writer's overview.
pub(crate) struct WriterOverview {
    writer: Arc<Writer>,
    instance: String,
    findings: Findings,
    is_registered: Option<Arc<AtomicBool>>,
}

impl WriterOverview {
    pub(crate) fn new(writer: Arc<Writer>, findings: Findings, is_registered: Option<Arc<AtomicBool>>) -> Self {
        Self { writer, instance: host::host_name(), findings, is_registered }
    }
}

impl OverviewSource for WriterOverview {
    fn sample(&self) -> RateSample {
        let mut sample = RateSample::of_process();
        let counters = self.writer.counters();
        sample.accepted = counters.records.get();
        sample.refused = counters.refused.get();
        for (name, offered) in self.writer.offered() {
            let work = offered.work();
            let (stored, batches) = (work.records.get(), work.batch_time.snapshot());
            sample.sinks.insert(name.as_str().into(), SinkSample { stored, batches, ..SinkSample::default() });
        }
        sample
    }

    fn complete(&self, overview: &mut OverviewJson) {
        overview.at = rfc3339::format(unix_microseconds());
        overview.instance.clone_from(&self.instance);
        Role::Writer.name().clone_into(&mut overview.role);
        env!("CARGO_PKG_VERSION").clone_into(&mut overview.version);
        let reason = offered_status::not_ready(&self.writer);
        overview.ready = reason.is_none();
        overview.reason = reason.map(str::to_owned);
        let problems = offered_status::problems(&self.writer, self.is_registered.as_deref());
        overview.problems = problems.all();
        overview.findings = self.findings.now();
        for sink in &mut overview.sinks {
            let Some(offered) = self.writer.offered().get(&sink.sink) else { continue };
            let status = offered_status::of(&sink.sink, offered);
            *sink = SinkRateJson {
                kind: Some(offered.kind.to_owned()),
                state: status.state,
                since: status.since,
                reason: status.reason,
                ..std::mem::take(sink)
            };
        }
    }
}
