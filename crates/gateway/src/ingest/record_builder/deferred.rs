//! Records of a batch that cost more than other requests of the shard should wait for. They wait for a thread of the worker pool.

use json::RecordRejection;
use json::batch::Item;

use super::RecordBuilder;
use crate::event_types::CostBudget;
use crate::ingest::pipeline::Workspace;

/// Records in their order, with their texts in one piece: there may be tens of thousands of a few bytes.
#[derive(Default)]
pub(super) struct DeferredRecords {
    records: Vec<Record>,
    /// The payloads of those that are accepted.
    payloads: String,
    /// The received bytes of the others.
    raw: Vec<u8>,
    /// The types and the ids that protocols name.
    names: Vec<u8>,
}

struct Record {
    line: u32,
    value: u32,
    ordinal: u32,
    /// Bytes of its type and of its id among the names.
    type_bytes: Option<usize>,
    id_bytes: Option<usize>,
    /// Where its bytes end.
    end: usize,
    fault: Option<Box<RecordRejection>>,
}

impl DeferredRecords {
    pub(super) fn add(&mut self, item: Item<'_>) {
        let Item { line, value, ordinal, type_name, id, record, raw } = item;
        let names = [type_name.map(str::as_bytes), id];
        names.into_iter().flatten().for_each(|name| self.names.extend_from_slice(name));
        let [type_bytes, id_bytes] = names.map(|name| name.map(<[u8]>::len));
        let (end, fault) = match record {
            Ok(payload) => {
                self.payloads.push_str(payload);
                (self.payloads.len(), None)
            }
            Err(refusal) => {
                self.raw.extend_from_slice(raw);
                (self.raw.len(), Some(Box::new(refusal)))
            }
        };
        self.records.push(Record { line, value, ordinal, type_bytes, id_bytes, end, fault });
    }

    /// About how many bytes they take in memory.
    pub(super) const fn bytes(&self) -> usize {
        self.records.len() * size_of::<Record>() + self.payloads.len() + self.raw.len() + self.names.len()
    }

    fn for_each(self, mut take: impl FnMut(Item<'_>)) {
        let (mut payload_start, mut raw_start, mut names) = (0, 0, self.names.as_slice());
        let mut name = |bytes: Option<usize>| {
            let (name, rest) = names.split_at(bytes?);
            names = rest;
            Some(name)
        };
        for Record { line, value, ordinal, type_bytes, id_bytes, end, fault } in self.records {
            let type_name = name(type_bytes).map(|name| str::from_utf8(name).unwrap_or_default());
            let id = name(id_bytes);
            let (record, raw) = match fault {
                None => {
                    let payload = &self.payloads[payload_start..end];
                    payload_start = end;
                    (Ok(payload), payload.as_bytes())
                }
                Some(refusal) => {
                    let raw = &self.raw[raw_start..end];
                    raw_start = end;
                    (Err(*refusal), raw)
                }
            };
            take(Item { line, value, ordinal, type_name, id, record, raw });
        }
    }
}

impl RecordBuilder {
    /// Whether records wait for a thread of the worker pool.
    pub(crate) const fn has_deferred(&self) -> bool {
        !self.deferred.records.is_empty()
    }

    /// On a thread of the worker pool: processes the deferred records. Later records have an unlimited budget too, until
    /// [`RecordBuilder::begin_tick`].
    pub(crate) fn process_deferred(&mut self, workspace: &mut Workspace) {
        self.budget = CostBudget::unlimited();
        std::mem::take(&mut self.deferred).for_each(|item| self.take(item, workspace));
    }

    /// The shard continues with the batch, after its other requests.
    pub(crate) const fn begin_tick(&mut self) {
        self.budget = CostBudget::inline();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use event::{EventId, Origin, TypeName};
    use eventlog::ContentHash;
    use json::batch::{Form, Splitter};
    use transform::{StepSpec, Tables, Transform};

    use super::*;
    use crate::event_types::{GatewayTypes, TransformHandle, TypeCache, TypeRegistry, TypeResolver, TypeRules};
    use crate::ingest::envelope::{Envelope, Headers};
    use crate::ingest::params::IngestParams;
    use crate::ingest::pipeline::{PipelineError, type_of};
    use http1::Fields;

    /// Compares each element with each other one.
    const COSTLY: &str = "l.all(x, l.all(y, x + y < 9))";

    fn name(text: &str) -> TypeName {
        TypeName::new(text).unwrap()
    }

    /// Types `a`, by this rule, `stepped`, with a transform, and `event`.
    fn types(rule: &str) -> TypeCache {
        let steps: Vec<StepSpec> =
            serde_json::from_value(serde_json::json!([{"set": "/all", "to": COSTLY, "when": "l != null"}])).unwrap();
        let steps = TransformHandle::new(Transform::compile(&steps, &Tables::default()).unwrap(), 7);
        let stepped = TypeRules { steps: Some(Arc::new(steps)), ..TypeRules::default() };
        let plain = ["a", "event"].map(|plain| (name(plain), TypeRules::default()));
        let types = GatewayTypes {
            named: plain.into_iter().chain([(name("stepped"), stepped)]).collect(),
            type_pointer: Some("/type".parse().unwrap()),
            choice: TypeResolver::new([(name("a"), rule.parse().unwrap())]),
            ..GatewayTypes::default()
        };
        TypeCache::new(Arc::new(TypeRegistry::new(types, &Arc::default())))
    }

    fn builder(rule: &str) -> RecordBuilder {
        let envelope = Envelope {
            received_at: 1,
            client: [127, 0, 0, 1].into(),
            source: "".into(),
            partial: None,
            types: None,
            headers: Headers::default(),
            trace: None,
        };
        let mut types = types(rule);
        let params = IngestParams::of(&Fields::default(), true, None, &mut types).unwrap();
        RecordBuilder::new(&params, None, envelope, &types, EventId([1; 16]), ContentHash::new(Origin([7; 16])))
    }

    fn push(builder: &mut RecordBuilder, lines: &str) {
        let mut splitter = Splitter::new(Form::Lines);
        splitter.push(lines.as_bytes(), &mut |item| builder.take(item, &mut Workspace::default())).unwrap();
    }

    fn large(number: usize) -> String {
        format!("{{\"n\":{number},\"l\":[{}1]}}\n", "1,".repeat(100))
    }

    #[test]
    fn slow_rule_defers_its_record_and_later_ones() {
        let mut builder = builder(COSTLY);
        push(&mut builder, &format!("{{\"n\":1}}\n{}no JSON\n{{\"type\":\"b\"}}\n{{\"n\":3}}\n", large(2)));
        assert_eq!((builder.accepted, builder.refused_count(), builder.has_deferred()), (1, 0, true));
        assert!(builder.is_costly(1), "what comes next isn't for the shard either");
        assert!(builder.bytes() > 2 * 100, "what waits takes memory");
        builder.process_deferred(&mut Workspace::default());
        assert_eq!((builder.accepted, builder.refused_count(), builder.has_deferred()), (3, 2, false));
        let names: Vec<String> = builder.types().map(|known| known.name.to_string()).collect();
        assert_eq!(names, ["event", "a"]);
        let lines: Vec<_> = builder.refused.iter().map(|refused| refused.place().0).collect();
        assert_eq!(lines, [3, 4]);
        push(&mut builder, &large(4));
        assert!(!builder.has_deferred(), "no other request waits");
        builder.begin_tick();
        push(&mut builder, &large(5));
        assert!(builder.has_deferred());
    }

    #[test]
    fn many_small_records_are_deferred() {
        let mut builder = builder("n > 1");
        push(&mut builder, &"{\"n\":2}\n".repeat(20));
        assert_eq!((builder.accepted, builder.has_deferred()), (20, false));
        push(&mut builder, &"{\"n\":2}\n".repeat(20_000));
        assert!(builder.has_deferred() && builder.accepted > 500, "{}", builder.accepted);
        builder.process_deferred(&mut Workspace::default());
        assert_eq!((builder.accepted, builder.batch.records().len()), (20_020, 20_020));
    }

    #[test]
    fn many_tiny_records_are_deferred() {
        let mut builder = builder("false");
        push(&mut builder, &"1\n".repeat(20_000));
        assert!(builder.has_deferred() && builder.accepted > 500 && builder.accepted < 10_000, "{}", builder.accepted);
        builder.process_deferred(&mut Workspace::default());
        assert_eq!((builder.accepted, builder.batch.records().len()), (20_000, 20_000));
        builder.begin_tick();
        push(&mut builder, &"no JSON\n".repeat(20_000));
        assert!(builder.has_deferred(), "rejected records cost work as well");
    }

    #[test]
    fn slow_steps_of_a_batch_are_rerun_offloaded() {
        let mut builder = builder("false");
        let stepped = large(1).replace('{', "{\"type\":\"stepped\",");
        push(&mut builder, &format!("{{\"type\":\"stepped\"}}\n{stepped}{{}}\n"));
        assert_eq!((builder.accepted, builder.batch.records().len(), builder.has_deferred()), (1, 1, true));
        builder.process_deferred(&mut Workspace::default());
        assert_eq!((builder.accepted, builder.batch.records().len()), (3, 3));
    }

    #[test]
    fn slow_type_rule_runs_off_the_shard() {
        let mut types = types(COSTLY);
        let mut find = |payload: &str, mut work: CostBudget| {
            let slot =
                type_of(&mut types, payload, &mut work).map_err(|stop| matches!(stop, PipelineError::OverBudget));
            slot.map(|slot| types.get(slot).name.to_string())
        };
        assert_eq!(find("{\"l\":[1]}", CostBudget::inline()).as_deref(), Ok("a"));
        assert_eq!(find(&large(1), CostBudget::inline()), Err(true));
        assert_eq!(find(&large(1), CostBudget::unlimited()).as_deref(), Ok("a"));
        let long = format!("{{\"pad\":\"{}\",\"type\":\"a\"}}", "x".repeat(500_000));
        assert_eq!(find(&long, CostBudget::inline()), Err(true));
        assert_eq!(find(&long, CostBudget::unlimited()).as_deref(), Ok("a"));
    }
}
