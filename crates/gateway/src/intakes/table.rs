//! The intakes of a configuration, as requests find them.

use std::sync::Arc;

use super::counters::{IntakeBoard, IntakeCounters};
use super::rule::IntakeRule;

/// An intake.
#[derive(Debug)]
pub(crate) struct IntakeEntry {
    pub(crate) rule: IntakeRule,
    pub(crate) counters: Arc<IntakeCounters>,
}

/// All intakes.
#[derive(Debug, Default)]
pub(crate) struct IntakeTable(Box<[Arc<IntakeEntry>]>);

impl IntakeTable {
    pub(crate) fn new(rules: &[IntakeRule], board: &IntakeBoard) -> Self {
        let entry = |rule: &IntakeRule| Arc::new(IntakeEntry { rule: rule.clone(), counters: board.of(&rule.name) });
        Self(rules.iter().map(entry).collect())
    }

    /// The intake of a path on the port of the gateway, and the path below its root. Of several, the longest root has precedence.
    pub(crate) fn at_path<'p>(&self, path: &'p str) -> Option<(&Arc<IntakeEntry>, &'p str)> {
        let below = |entry: &'_ Arc<IntakeEntry>| {
            let rest = path.strip_prefix(&*entry.rule.path)?;
            (rest.is_empty() || rest.starts_with('/')).then_some(rest)
        };
        let found = self.0.iter().filter_map(|entry| Some((entry, below(entry)?)));
        found.min_by_key(|(_, rest)| rest.len())
    }

    /// The intake of this name, on its separate port.
    pub(crate) fn of_name(&self, name: &str) -> Option<&Arc<IntakeEntry>> {
        self.0.iter().find(|entry| *entry.rule.name == *name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(name: &str, path: &str) -> IntakeRule {
        IntakeRule { name: name.into(), path: path.into(), dedupes: true, type_name: None, intake: Arc::new(Nothing) }
    }

    #[derive(Debug)]
    struct Nothing;

    impl intake::Intake for Nothing {
        fn route(&self, _: &intake::IntakeHead<'_>) -> intake::IntakeRoute {
            intake::IntakeRoute::Unknown
        }

        fn refusal(&self, problem: &intake::Problem) -> intake::Reply {
            intake::Reply::empty(problem.status())
        }
    }

    #[test]
    fn longest_root_has_precedence() {
        let table = IntakeTable::new(&[rule("a", "/hooks"), rule("b", "/hooks/b")], &IntakeBoard::default());
        let find = |path| table.at_path(path).map(|(entry, rest)| (entry.rule.name.to_string(), rest));
        assert_eq!(find("/hooks/b/x"), Some(("b".into(), "/x")));
        assert_eq!(find("/hooks/b"), Some(("b".into(), "")));
        assert_eq!(find("/hooks/bc"), Some(("a".into(), "/bc")));
        assert_eq!(find("/hook"), None);
        assert!(table.of_name("a").is_some() && table.of_name("c").is_none());
    }
}
