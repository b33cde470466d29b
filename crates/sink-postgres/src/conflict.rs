//! What to do with a new row whose id exists: a table's conflict rule, as SQL.

use super::columns::{Content, Field};
use super::config::RowConflictPolicy;
use super::kind::ColumnType;
use super::table::Table;
use json::JsonPointer;

/// Adds `rows` by the table's rule, and returns the ids of rows that were added or replaced. `rows` has the columns of
/// the table, and `forebay_n`, which identifies the first of several rows with one id.
pub(super) fn insert(table: &Table, columns: &str, rows: &str) -> String {
    let is_of_key = |field: &&Field| matches!(field.content, Content::Id | Content::EventTime);
    let (to, key, others) = (&table.quoted, table.key(), table.fields.iter().filter(|field| !is_of_key(field)));
    let set = table.replaced(others, "excluded");
    // One statement can't replace a row twice: of several rows with one id, only the one that would remain is used.
    let best = |order: &str| format!("(select distinct on ({key}) * from {rows} order by {key}, {order}) as n");
    match &table.conflict {
        RowConflictPolicy::Reject | RowConflictPolicy::Ignore => insert_new(table, columns, rows),
        RowConflictPolicy::Overwrite => format!(
            "insert into {to} as t ({columns}) select {columns} from {} order by id on conflict ({key}) do update set {set} returning id",
            best("forebay_n desc")
        ),
        RowConflictPolicy::Newest(pointer) => {
            let [new, excluded, stored] = ["n", "excluded", "t"].map(|of| value(&table.fields, pointer, of));
            format!(
                "insert into {to} as t ({columns}) select {columns} from {} order by id on conflict ({key}) do update set {set} \
                 where {excluded} > {stored} or ({stored} is null and {excluded} is not null) returning id",
                best(&format!("{new} desc nulls last, forebay_n"))
            )
        }
    }
}

/// Adds `rows` without a rule: existing rows are kept.
pub(super) fn insert_new(table: &Table, columns: &str, rows: &str) -> String {
    let (to, key) = (&table.quoted, table.key());
    format!(
        "insert into {to} ({columns}) select {columns} from {rows} order by id, forebay_n on conflict ({key}) do nothing returning id"
    )
}

/// The value that rows are compared by: the column that holds it, or the payload's member.
fn value(fields: &[Field], pointer: &JsonPointer, of: &str) -> String {
    let column = fields.iter().find(|field| field.content == Content::Member(pointer.clone()));
    match column {
        Some(field) if field.kind == ColumnType::Json => format!("{of}.{}::jsonb", field.quoted()),
        Some(field) => format!("{of}.{}", field.quoted()),
        None => format!("nullif({of}.\"payload\"::jsonb #> {}, 'null'::jsonb)", path(pointer)),
    }
}

/// A pointer as an array of names.
fn path(pointer: &JsonPointer) -> String {
    let steps = pointer.as_str().split('/').skip(1);
    let quoted = |step: &str| format!("'{}'", step.replace("~1", "/").replace("~0", "~").replace('\'', "''"));
    format!("array[{}]::text[]", steps.map(quoted).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails loudly")]
mod tests {
    use super::*;

    #[test]
    fn pointer_becomes_an_escaped_array_of_names() {
        let path = |text: &str| path(&text.parse().unwrap());
        assert_eq!(path("/a/0/it's~1~0"), "array['a', '0', 'it''s/~']::text[]");
        assert_eq!(path(""), "array[]::text[]");
    }
}
