//! The bridges of a configuration, as requests find them.

use std::sync::Arc;

use http1::Method;

use super::counters::{BridgeBoard, BridgeCounters};
use super::methods::Methods;
use super::rules::{BridgeAccess, BridgeRule};
use crate::auth::RequiredAccess;

/// A bridge.
#[derive(Debug)]
pub(crate) struct Bridge {
    pub(crate) rule: BridgeRule,
    pub(crate) counters: Arc<BridgeCounters>,
}

/// All bridges, in the order in which their paths are compared.
#[derive(Debug, Default)]
pub(crate) struct BridgeTable(Box<[Arc<Bridge>]>);

/// The bridges of a path.
pub(crate) struct BridgedPath {
    /// That of the request's method. Without one, that of another method.
    pub(crate) bridge: Arc<Bridge>,
    /// The methods of all.
    pub(crate) methods: Methods,
}

impl BridgeTable {
    pub(crate) fn new(rules: &[BridgeRule], board: &BridgeBoard) -> Self {
        let bridge = |rule: &BridgeRule| Arc::new(Bridge { rule: rule.clone(), counters: board.of(rule.name()) });
        Self(rules.iter().map(bridge).collect())
    }

    pub(crate) fn find(&self, path: &str, method: Method) -> Option<BridgedPath> {
        let mut found: Option<BridgedPath> = None;
        for bridge in self.0.iter().filter(|bridge| bridge.rule.path.matches(path)) {
            let methods = bridge.rule.methods;
            match &mut found {
                None => found = Some(BridgedPath { bridge: bridge.clone(), methods }),
                // Another path that matches too has precedence.
                Some(first) if !first.bridge.shares_path(bridge) => break,
                Some(first) => {
                    if !first.bridge.rule.methods.has(method) {
                        first.bridge = bridge.clone();
                    }
                    first.methods = first.methods.and(methods);
                }
            }
        }
        found
    }

    /// The names of the headers that the bridges of a path pass on.
    pub(crate) fn passed(&self, path: &str) -> Vec<Box<str>> {
        let of_path = self.0.iter().filter(|bridge| bridge.rule.path.matches(path));
        let first = of_path.clone().next();
        let own = of_path.filter(|bridge| first.is_some_and(|first| bridge.shares_path(first)));
        own.flat_map(|bridge| bridge.rule.pass.iter().cloned().chain(["traceparent".into()])).collect()
    }
}

impl Bridge {
    /// Whether another one is for other methods of the same path.
    fn shares_path(&self, other: &Self) -> bool {
        self.rule.path.precedence(&other.rule.path).is_eq()
    }

    /// The access that its requests need.
    pub(crate) const fn access(&self) -> RequiredAccess {
        match self.rule.access {
            BridgeAccess::Free => RequiredAccess::Free,
            BridgeAccess::Scope(scope) => RequiredAccess::Scope(scope),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn rule(path: &str, methods: &[&str]) -> BridgeRule {
        let methods = methods.iter().map(|name| name.parse::<Methods>().unwrap()).fold(Methods::NONE, Methods::and);
        BridgeRule {
            path: path.parse().unwrap(),
            subject: "s".parse().unwrap(),
            access: BridgeAccess::Free,
            timeout: Duration::from_secs(1),
            methods,
            pass: Vec::new(),
            max_waiting: 1,
        }
    }

    #[test]
    fn literal_path_precedes_and_methods_share_a_path() {
        let mut rules =
            [rule("/a/b", &["GET"]), rule("/a/{x}", &["GET"]), rule("/a/{y}", &["PUT", "POST"]), rule("/c", &["GET"])];
        rules[1].pass = vec!["one".into()];
        rules[2].pass = vec!["two".into()];
        let table = BridgeTable::new(&rules, &BridgeBoard::default());
        let find = |path: &str, method| {
            let found = table.find(path, method)?;
            Some((found.bridge.rule.name(), found.methods.allow()))
        };
        let all = "GET, HEAD, OPTIONS, POST, PUT";
        assert_eq!(find("/a/b", Method::Get), Some(("GET /a/b".into(), "GET, HEAD, OPTIONS")));
        assert_eq!(find("/a/b", Method::Put).unwrap().1, "GET, HEAD, OPTIONS");
        assert_eq!(find("/a/7", Method::Head), Some(("GET /a/{x}".into(), all)));
        assert_eq!(find("/a/7", Method::Put), Some(("POST,PUT /a/{y}".into(), all)));
        assert_eq!(find("/a/7", Method::Delete).unwrap().1, all);
        assert_eq!(find("/b", Method::Get), None);
        let passed = |path| table.passed(path).join(" ");
        assert_eq!(["/a/b", "/a/7", "/b"].map(passed), ["traceparent", "one traceparent two traceparent", ""]);
    }
}
