//! Records of a batch that are more work than the shard's other requests should wait for: they are put off until a thread beside
//! it takes them.

use pipeline::Refusal;
use pipeline::batch::Item;

use super::Encoder;
use crate::effort::Work;

/// Records in their order, with their texts in one piece: there may be tens of thousands of a few bytes.
#[derive(Default)]
pub(super) struct PutOff {
    records: Vec<Record>,
    /// The payloads of those that are taken.
    payloads: String,
    /// The bytes of the others as they came.
    raw: Vec<u8>,
}

struct Record {
    line: u32,
    ordinal: u32,
    /// Where its bytes end.
    end: usize,
    fault: Option<Box<Refusal>>,
}

impl PutOff {
    pub(super) fn add(&mut self, item: Item<'_>) {
        let Item { line, ordinal, record, raw } = item;
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
        self.records.push(Record { line, ordinal, end, fault });
    }

    /// What they take in memory, about.
    pub(super) const fn bytes(&self) -> usize {
        self.records.len() * size_of::<Record>() + self.payloads.len() + self.raw.len()
    }

    fn for_each(self, mut take: impl FnMut(Item<'_>)) {
        let (mut payload_start, mut raw_start) = (0, 0);
        for Record { line, ordinal, end, fault } in self.records {
            match fault {
                None => {
                    let payload = &self.payloads[payload_start..end];
                    take(Item { line, ordinal, record: Ok(payload), raw: payload.as_bytes() });
                    payload_start = end;
                }
                Some(refusal) => {
                    take(Item { line, ordinal, record: Err(*refusal), raw: &self.raw[raw_start..end] });
                    raw_start = end;
                }
            }
        }
    }
}

impl Encoder {
    /// Whether records wait for a thread beside the shard.
    pub(crate) const fn is_behind(&self) -> bool {
        !self.put_off.records.is_empty()
    }

    /// On a thread beside the shard: takes what was put off. What comes next is taken however much it is.
    pub(crate) fn catch_up(&mut self) {
        self.work = Work::beside();
        std::mem::take(&mut self.put_off).for_each(|item| self.take(item));
    }

    /// The shard goes on with it, and its other requests had their turn.
    pub(crate) const fn begin_turn(&mut self) {
        self.work = Work::inline();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use event::{EventId, Origin, TypeName};
    use eventlog::ContentHash;
    use pipeline::batch::{Form, Splitter};
    use pipeline::transform::{StepSpec, Tables, Transform};

    use super::super::{Envelope, Ids, type_of};
    use super::*;
    use crate::effort::Much;
    use crate::headers::Headers;
    use crate::type_cache::TypeCache;
    use crate::type_choice::TypeChoice;
    use crate::type_steps::TypeSteps;
    use crate::type_table::{GatewayTypes, TypeRules, TypeTable};

    /// Each element is held against each other one.
    const COSTLY: &str = "l.all(x, l.all(y, x + y < 9))";

    fn name(text: &str) -> TypeName {
        TypeName::new(text).unwrap()
    }

    /// Types `a`, by this rule, `stepped`, which takes steps, and `event`.
    fn types(rule: &str) -> TypeCache {
        let steps: Vec<StepSpec> =
            serde_json::from_value(serde_json::json!([{"set": "/all", "to": COSTLY, "when": "l != null"}])).unwrap();
        let steps = TypeSteps::new(Transform::compile(&steps, &Tables::default()).unwrap(), 7);
        let stepped = TypeRules { steps: Some(Arc::new(steps)), ..TypeRules::default() };
        let plain = ["a", "event"].map(|plain| (name(plain), TypeRules::default()));
        let types = GatewayTypes {
            named: plain.into_iter().chain([(name("stepped"), stepped)]).collect(),
            type_pointer: Some("/type".parse().unwrap()),
            choice: TypeChoice::new([(name("a"), rule.parse().unwrap())]),
            ..GatewayTypes::default()
        };
        TypeCache::new(Arc::new(TypeTable::new(types, &Arc::default())))
    }

    fn encoder(rule: &str) -> Encoder {
        let envelope =
            Envelope { received_at: 1, client: [127, 0, 0, 1].into(), source: "".into(), headers: Headers::default() };
        let ids = Ids::Generated(EventId([1; 16]));
        Encoder::new(envelope, types(rule), None, ids, ContentHash::new(Origin([7; 16])))
    }

    fn push(encoder: &mut Encoder, lines: &str) {
        let mut splitter = Splitter::new(Form::Lines);
        splitter.push(lines.as_bytes(), &mut |item| encoder.take(item)).unwrap();
    }

    fn large(number: usize) -> String {
        format!("{{\"n\":{number},\"l\":[{}1]}}\n", "1,".repeat(100))
    }

    #[test]
    fn what_a_rule_would_take_long_for_is_put_off_with_all_behind_it() {
        let mut encoder = encoder(COSTLY);
        push(&mut encoder, &format!("{{\"n\":1}}\n{}no JSON\n{{\"type\":\"b\"}}\n{{\"n\":3}}\n", large(2)));
        assert_eq!((encoder.accepted, encoder.refused_count(), encoder.is_behind()), (1, 0, true));
        assert!(encoder.is_much_work(1), "what comes next isn't for the shard either");
        assert!(encoder.bytes() > 2 * 100, "what waits takes memory");
        encoder.catch_up();
        assert_eq!((encoder.accepted, encoder.refused_count(), encoder.is_behind()), (3, 2, false));
        let names: Vec<String> = encoder.types().map(|known| known.name.to_string()).collect();
        assert_eq!(names, ["event", "a"]);
        let lines: Vec<_> = encoder.refused.iter().map(crate::answer::Refusal::line).collect();
        assert_eq!(lines, [3, 4]);
        push(&mut encoder, &large(4));
        assert!(!encoder.is_behind(), "here nobody waits");
        encoder.begin_turn();
        push(&mut encoder, &large(5));
        assert!(encoder.is_behind());
    }

    #[test]
    fn small_records_are_put_off_when_they_are_many() {
        let mut encoder = encoder("n > 1");
        push(&mut encoder, &"{\"n\":2}\n".repeat(20));
        assert_eq!((encoder.accepted, encoder.is_behind()), (20, false));
        push(&mut encoder, &"{\"n\":2}\n".repeat(20_000));
        assert!(encoder.is_behind() && encoder.accepted > 500, "{}", encoder.accepted);
        encoder.catch_up();
        assert_eq!((encoder.accepted, encoder.batch.records().len()), (20_020, 20_020));
    }

    #[test]
    fn records_that_are_next_to_nothing_are_put_off_too_when_they_are_many() {
        let mut encoder = encoder("false");
        push(&mut encoder, &"1\n".repeat(20_000));
        assert!(encoder.is_behind() && encoder.accepted > 500 && encoder.accepted < 10_000, "{}", encoder.accepted);
        encoder.catch_up();
        assert_eq!((encoder.accepted, encoder.batch.records().len()), (20_000, 20_000));
        encoder.begin_turn();
        push(&mut encoder, &"no JSON\n".repeat(20_000));
        assert!(encoder.is_behind(), "what is refused is work as well");
    }

    #[test]
    fn steps_of_a_batch_that_take_long_are_stopped_and_taken_again() {
        let mut encoder = encoder("false");
        let stepped = large(1).replace('{', "{\"type\":\"stepped\",");
        push(&mut encoder, &format!("{{\"type\":\"stepped\"}}\n{stepped}{{}}\n"));
        assert_eq!((encoder.accepted, encoder.batch.records().len(), encoder.is_behind()), (1, 1, true));
        encoder.catch_up();
        assert_eq!((encoder.accepted, encoder.batch.records().len()), (3, 3));
    }

    #[test]
    fn a_type_that_takes_long_to_find_is_not_found_on_the_shard() {
        let mut types = types(COSTLY);
        let mut find = |payload: &str, mut work: Work| {
            type_of(&mut types, payload, &mut work).map(|slot| types.get(slot.unwrap()).name.to_string())
        };
        assert_eq!(find("{\"l\":[1]}", Work::inline()).as_deref(), Ok("a"));
        assert_eq!(find(&large(1), Work::inline()), Err(Much));
        assert_eq!(find(&large(1), Work::beside()).as_deref(), Ok("a"));
        let long = format!("{{\"pad\":\"{}\",\"type\":\"a\"}}", "x".repeat(500_000));
        assert_eq!(find(&long, Work::inline()), Err(Much));
        assert_eq!(find(&long, Work::beside()).as_deref(), Ok("a"));
    }
}
