//! Tables that steps look values up in: built once from texts that the caller has read.

mod csv;

use std::collections::HashMap;
use std::sync::Arc;

use limits::{EVENT_BYTES_MAX, TABLE_BYTES_MAX};

use json::{parts, text};

/// The tables that a transform may name.
#[derive(Clone, Debug, Default)]
pub struct Tables(HashMap<String, Arc<Table>>);

/// One table: a JSON value for each key.
#[derive(Debug, Default)]
pub(super) struct Table(HashMap<String, String>);

/// Why a text is not a table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTable {
    /// It has too many bytes.
    #[error("a table has at most {TABLE_BYTES_MAX} bytes, but this one has {0}")]
    TooLarge(usize),
    /// It is no JSON.
    #[error("the table is not valid JSON: {0}")]
    NotJson(String),
    /// It is JSON of another form.
    #[error("a table in JSON must be one object, with a member for each key")]
    NoObject,
    /// A value of it would make an event too long.
    #[error("the value of key `{0}` has more than {EVENT_BYTES_MAX} bytes")]
    LongValue(String),
    /// A line of CSV has another number of fields than the first one, or a quote that isn't closed.
    #[error("line {0} of the table: {1}")]
    Line(usize, &'static str),
    /// There is no such column.
    #[error("the table has no column `{0}`, only {1}")]
    NoColumn(String, String),
}

impl Tables {
    /// Adds a table in JSON: one object, whose names are the keys.
    ///
    /// # Errors
    /// [`InvalidTable`] if it isn't one.
    pub fn add_json(&mut self, name: &str, text: &str) -> Result<(), InvalidTable> {
        check_size(text)?;
        let value = json::check(text.as_bytes()).map_err(|error| InvalidTable::NotJson(error.to_string()))?;
        if !value.starts_with('{') {
            return Err(InvalidTable::NoObject);
        }
        let rows = parts::members(value).map(|member| (member.name().into_owned(), member.value.to_owned()));
        self.add(name, rows.collect())
    }

    /// Adds a table in CSV (RFC 4180). Its first line names the columns. Keys are in the column `key`, or in the first;
    /// the result is the column `value`, or an object of all others. Of lines with the same key the last counts.
    ///
    /// # Errors
    /// [`InvalidTable`] if it isn't one.
    pub fn add_csv(
        &mut self,
        name: &str,
        text: &str,
        key: Option<&str>,
        value: Option<&str>,
    ) -> Result<(), InvalidTable> {
        check_size(text)?;
        let mut records = csv::records(text);
        let (_, columns) = records.next().transpose()?.unwrap_or_default();
        if (1..columns.len()).any(|number| columns[..number].contains(&columns[number])) {
            return Err(InvalidTable::Line(1, "two columns have the same name"));
        }
        let column = |name: &str| {
            let found = columns.iter().position(|column| column == name);
            found.ok_or_else(|| InvalidTable::NoColumn(name.to_owned(), columns.join(", ")))
        };
        let (key, value) = (key.map_or(Ok(0), column)?, value.map(column).transpose()?);
        let mut rows = HashMap::new();
        for record in records {
            let (line, fields) = record?;
            if fields.len() != columns.len() {
                return Err(InvalidTable::Line(line, "the number of fields differs from the first line's"));
            }
            let found = match value {
                Some(value) => text::string(&fields[value]),
                None => object_of(&columns, &fields, key),
            };
            rows.insert(fields[key].clone(), found);
        }
        self.add(name, rows)
    }

    fn add(&mut self, name: &str, rows: HashMap<String, String>) -> Result<(), InvalidTable> {
        if let Some((key, _)) = rows.iter().find(|(_, value)| value.len() > EVENT_BYTES_MAX) {
            return Err(InvalidTable::LongValue(key.clone()));
        }
        self.0.insert(name.to_owned(), Arc::new(Table(rows)));
        Ok(())
    }

    pub(super) fn get(&self, name: &str) -> Option<Arc<Table>> {
        self.0.get(name).cloned()
    }

    pub(super) fn names(&self) -> Vec<&str> {
        let mut names: Vec<_> = self.0.keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    }
}

impl Table {
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }
}

fn check_size(text: &str) -> Result<(), InvalidTable> {
    if text.len() > TABLE_BYTES_MAX { Err(InvalidTable::TooLarge(text.len())) } else { Ok(()) }
}

fn object_of(columns: &[String], fields: &[String], key: usize) -> String {
    let others = columns.iter().zip(fields).enumerate().filter(|(number, _)| *number != key);
    let members: Vec<_> =
        others.map(|(_, (name, value))| format!("{}:{}", text::string(name), text::string(value))).collect();
    format!("{{{}}}", members.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn csv(text: &str, key: Option<&str>, value: Option<&str>) -> Result<Arc<Table>, InvalidTable> {
        let mut tables = Tables::default();
        tables.add_csv("t", text, key, value)?;
        Ok(tables.get("t").unwrap())
    }

    #[test]
    fn rows_are_found_by_their_key() {
        let text = "code,name,area\r\nNL,Netherlands,41850\n\"D\"\"E\",\"Germany,\nFederal\",357022\n";
        let table = csv(text, None, None).unwrap();
        assert_eq!(table.get("NL"), Some(r#"{"name":"Netherlands","area":"41850"}"#));
        assert_eq!(table.get("D\"E"), Some(r#"{"name":"Germany,\nFederal","area":"357022"}"#));
        assert_eq!(table.get("code"), None);
        let table = csv(text, Some("name"), Some("code")).unwrap();
        assert_eq!(table.get("Netherlands"), Some("\"NL\""));
    }

    #[test]
    fn invalid_tables_are_errors() {
        assert_eq!(
            csv("a,b\n1\n", None, None).unwrap_err().to_string(),
            "line 2 of the table: the number of fields differs from the first line's"
        );
        assert!(matches!(csv("a,b\n\n1,\"2", None, None), Err(InvalidTable::Line(3, _))));
        assert!(matches!(csv("a,b,a", None, None), Err(InvalidTable::Line(1, _))));
        assert!(matches!(csv("a,b", Some("c"), None), Err(InvalidTable::NoColumn(..))));
        let mut tables = Tables::default();
        assert_eq!(tables.add_json("t", "[1]"), Err(InvalidTable::NoObject));
        assert!(matches!(tables.add_json("t", "{"), Err(InvalidTable::NotJson(_))));
    }

    #[test]
    fn names_in_json_are_keys() {
        let mut tables = Tables::default();
        tables.add_json("t", r#" {"a": [1, 2], "\u0062": 1.50} "#).unwrap();
        let table = tables.get("t").unwrap();
        assert_eq!((table.get("a"), table.get("b"), table.get("c")), (Some("[1, 2]"), Some("1.50"), None));
    }
}
