//! Compares answers of servers with the types of a contract. A comment `/** GET /path, POST /path */` above a type names the requests that it
//! answers.

use serde_json::Value;

use super::typescript::{Object, Type, Types, read};

/// The types of a contract, and the requests that they answer.
pub(super) struct Contract {
    types: Types,
    /// Each request: its method, its path, and the name of the answer's type.
    pub(super) requests: Vec<(String, String, String)>,
}

impl Contract {
    /// Reads the text of a contract.
    ///
    /// # Panics
    /// It has more than types can say, or names a type that it doesn't have.
    pub(super) fn read(text: &str) -> Self {
        let types = read(text);
        let mut requests = Vec::new();
        for (name, comment) in &types.comments {
            for request in comment.split(", ") {
                if let Some((method @ ("GET" | "POST" | "PUT" | "DELETE"), path)) = request.split_once(' ')
                    && path.starts_with('/')
                {
                    requests.push((method.to_owned(), path.to_owned(), name.clone()));
                }
            }
        }
        let contract = Self { types, requests };
        contract.types.types.values().for_each(|of| contract.check_names(of));
        contract
    }

    fn check_names(&self, of: &Type) {
        match of {
            Type::Named(name) => assert!(self.types.types.contains_key(name), "there is no type {name}"),
            Type::List(inner) => self.check_names(inner),
            Type::OneOf(parts) => parts.iter().for_each(|part| self.check_names(part)),
            Type::Object(object) => object.members.values().for_each(|(of, _)| self.check_names(of)),
            _ => {}
        }
    }

    /// How a value differs from the type of this name, a line each.
    ///
    /// # Panics
    /// There is no such type.
    pub(super) fn differences(&self, name: &str, value: &Value) -> Vec<String> {
        let mut found = Vec::new();
        self.compare(&self.types.types[name], value, name, &mut found);
        found
    }

    fn compare(&self, of: &Type, value: &Value, at: &str, found: &mut Vec<String>) {
        let is_right = match of {
            Type::Unknown => true,
            Type::Text => value.is_string(),
            Type::Number => value.is_number(),
            Type::Boolean => value.is_boolean(),
            Type::Literal(literal) => serde_json::from_str::<Value>(literal).is_ok_and(|literal| literal == *value),
            Type::Named(name) if name == "Time" => {
                value.as_str().is_some_and(|time| text::rfc3339::parse(time).is_ok())
            }
            Type::Named(name) => return self.compare(&self.types.types[name], value, at, found),
            Type::List(of) => match value.as_array() {
                Some(values) => {
                    return values
                        .iter()
                        .enumerate()
                        .for_each(|(index, value)| self.compare(of, value, &format!("{at}[{index}]"), found));
                }
                None => false,
            },
            Type::OneOf(parts) => return self.compare_one_of(parts, value, at, found),
            Type::Object(object) => match value.as_object() {
                Some(members) => return self.compare_members(object, members, at, found),
                None => false,
            },
        };
        if !is_right {
            found.push(format!("{at}: {value} isn't {of:?}"));
        }
    }

    /// If none fits, the differences are those of the part that has the fewest.
    fn compare_one_of(&self, parts: &[Type], value: &Value, at: &str, found: &mut Vec<String>) {
        let each = parts.iter().map(|part| {
            let mut differences = Vec::new();
            self.compare(part, value, at, &mut differences);
            differences
        });
        // A null that is allowed says nothing about an object that isn't right.
        let is_literal = |differences: &Vec<String>| differences.iter().any(|line| line.contains("Literal"));
        found.extend(
            each.min_by_key(|differences| (!differences.is_empty(), is_literal(differences), differences.len()))
                .unwrap_or_default(),
        );
    }

    fn compare_members(
        &self,
        object: &Object,
        members: &serde_json::Map<String, Value>,
        at: &str,
        found: &mut Vec<String>,
    ) {
        for (name, (of, is_optional)) in &object.members {
            match members.get(name) {
                Some(value) => self.compare(of, value, &format!("{at}.{name}"), found),
                None if *is_optional => {}
                None => found.push(format!("{at}.{name} is missing")),
            }
        }
        for (name, value) in members.iter().filter(|(name, _)| !object.members.contains_key(*name)) {
            match &object.others {
                Some(of) => self.compare(of, value, &format!("{at}.{name}"), found),
                None => found.push(format!("{at}.{name} isn't in the contract")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_name_their_place() {
        let contract = Contract::read(
            "export type Time = string;\n/** GET /a, POST /a, GET of none */\nexport interface A { t: Time | null; b: { c?: number }[]; k: \"x\" | \"y\" }",
        );
        assert_eq!(contract.requests.len(), 2);
        let of = |text: &str| contract.differences("A", &serde_json::from_str(text).unwrap());
        assert!(of(r#"{"t":"2026-11-28T10:00:00Z","b":[{},{"c":1}],"k":"y"}"#).is_empty());
        assert!(of(r#"{"t":null,"b":[],"k":"x"}"#).is_empty());
        for (answer, wanted) in [
            (r#"{"t":"soon","b":[],"k":"x"}"#, "A.t: "),
            (r#"{"t":null,"b":[{"c":"1"}],"k":"x"}"#, "A.b[0].c: "),
            (r#"{"t":null,"b":[{"d":1}],"k":"x"}"#, "A.b[0].d isn't in the contract"),
            (r#"{"t":null,"b":[],"k":"z"}"#, "A.k: "),
            (r#"{"b":[],"k":"x"}"#, "A.t is missing"),
            ("[]", "A: "),
        ] {
            let found = of(answer);
            assert!(found.len() == 1 && found[0].starts_with(wanted), "{found:?}");
        }
    }
}
