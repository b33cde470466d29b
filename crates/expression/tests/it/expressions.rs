//! Compares expressions with the table of examples in `docs/reference/expressions.md`.

use expression::Expression;

const PAGE: &str = include_str!("../../../../docs/reference/expressions.md");

/// The cells of a row, split at the bars that aren't escaped.
fn cells(row: &str) -> Vec<String> {
    let row = row.replace(r"\|", "\u{1}");
    row.split('|').map(|cell| cell.trim().replace('\u{1}', "|")).collect()
}

fn code(cell: &str) -> &str {
    cell.strip_prefix('`').and_then(|cell| cell.strip_suffix('`')).unwrap_or(cell)
}

fn result(expression: &str, document: &str) -> String {
    json::check(document.as_bytes()).expect("the example is JSON");
    let compiled: Expression = expression.parse().expect("the example is an expression");
    match compiled.evaluate(document) {
        Ok(value) => value.to_json().expect("it is JSON").into_owned(),
        Err(error) => format!("error: {}", error.reason()),
    }
}

#[test]
fn examples_give_the_results_of_the_page() {
    let start = PAGE.find("| expression | document | result |").expect("the table is there");
    let rows: Vec<_> = PAGE[start..].lines().skip(2).take_while(|row| row.starts_with('|')).map(cells).collect();
    assert!(rows.len() >= 20, "{} examples", rows.len());
    for row in rows {
        let expected = code(&row[3]).replace(r"\`", "`");
        assert_eq!(result(code(&row[1]), code(&row[2])), expected, "{} on {}", row[1], row[2]);
    }
}
