//! The rows of `docs/reference/limits.md`: each constant of this crate in plain words, and what happens at the limit.

use std::time::Duration;

use testkit::generated::generated_block;

use crate::*;

/// A value of a constant.
enum Value {
    Number(u64),
    Time(Duration),
}

impl From<usize> for Value {
    fn from(number: usize) -> Self {
        Self::Number(number as u64)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Number(number.unsigned_abs())
    }
}

impl From<Duration> for Value {
    fn from(time: Duration) -> Self {
        Self::Time(time)
    }
}

/// Each group begins with `# ` and the name of its block. Other lines are rows: words, value, and what happens at the limit.
const ROWS: &str = include_str!("reference.txt");

fn bytes(value: Value) -> String {
    let Value::Number(bytes) = value else { panic!("a time has no bytes") };
    let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match units.into_iter().find(|(_, power)| bytes >= 1 << power && bytes.is_multiple_of(1 << power)) {
        Some((unit, power)) => format!("{} {unit}", bytes >> power),
        None => format!("{} bytes", count(Value::Number(bytes))),
    }
}

fn count(value: Value) -> String {
    let Value::Number(number) = value else { panic!("a time is no number") };
    let digits = number.to_string();
    let separated = digits.bytes().enumerate().flat_map(|(at, digit)| {
        let comma = at > 0 && (digits.len() - at).is_multiple_of(3);
        comma.then_some(',').into_iter().chain([char::from(digit)])
    });
    separated.collect()
}

fn time(value: Value) -> String {
    let Value::Time(time) = value else { panic!("a number is no time") };
    let units = [("days", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000), ("ms", 1)];
    let milliseconds = time.as_millis();
    let (unit, each) = units.into_iter().find(|(_, each)| milliseconds.is_multiple_of(*each)).unwrap();
    match milliseconds / each {
        1 if unit == "days" => "24 h".to_owned(),
        number => format!("{number} {unit}"),
    }
}

fn power(value: Value) -> String {
    let Value::Number(power) = value else { panic!("a time is no power") };
    bytes(Value::Number(1 << power))
}

/// The text with the value of each `{NAME unit}`. The names go to `used`.
fn filled<'a>(text: &'a str, used: &mut Vec<&'a str>) -> String {
    let mut parts = text.split('{');
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (place, rest) = part.split_once('}').unwrap();
        let (name, unit) = place.split_once(' ').unwrap();
        let value =
            values().into_iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("no constant {name}")).1;
        used.push(name);
        filled += &match unit {
            "bytes" => bytes(value),
            "count" => count(value),
            "time" => time(value),
            "power" => power(value),
            _ => panic!("no unit {unit}"),
        };
        filled += rest;
    }
    filled
}

#[test]
fn limits_page_matches_the_constants() {
    for group in ROWS.split("# ").skip(1) {
        let (name, rows) = group.split_once('\n').unwrap();
        let rows =
            rows.lines().filter(|line| !line.is_empty()).map(|line| format!("| {} |\n", filled(line, &mut Vec::new())));
        let rows: String = rows.collect();
        generated_block(
            "docs/reference/limits.md",
            name,
            &format!("| what | at most | at the limit |\n|---|---|---|\n{rows}"),
        );
    }
}

#[test]
fn every_limit_is_listed_once() {
    let lines = [include_str!("lib.rs"), include_str!("memory.rs")].into_iter().flat_map(str::lines);
    let constants = lines.filter_map(|line| line.strip_prefix("pub const ")?.split_once(": ")).map(|(name, _)| name);
    let mut declared: Vec<&str> =
        constants.filter(|name| name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')).collect();
    let mut listed = Vec::new();
    filled(ROWS, &mut listed);
    let missing: Vec<&&str> = declared.iter().filter(|name| !listed.contains(name)).collect();
    assert!(missing.is_empty(), "without a row in reference.txt: {missing:?}");
    declared.sort_unstable();
    listed.sort_unstable();
    assert_eq!(listed, declared, "a row repeats a constant");
}

#[test]
fn values_are_shown_with_units() {
    assert_eq!(
        [bytes(1536_u64.into()), bytes((5_u64 << 30).into()), bytes(20_u64.into())],
        ["1,536 bytes", "5 GiB", "20 bytes"]
    );
    assert_eq!([count(1_234_567_u64.into()), count(100_u64.into())], ["1,234,567", "100"]);
    assert_eq!([60, 75, 86_400].map(|seconds| time(Duration::from_secs(seconds).into())), ["1 min", "75 s", "24 h"]);
}

/// The constants by name.
#[expect(clippy::too_many_lines, reason = "a table")]
fn values() -> Vec<(&'static str, Value)> {
    vec![
        ("EVENT_BYTES_MAX", EVENT_BYTES_MAX.into()),
        ("BATCH_BYTES_MAX", BATCH_BYTES_MAX.into()),
        ("BATCH_RECORDS_MAX", BATCH_RECORDS_MAX.into()),
        ("REFUSALS_LISTED_MAX", REFUSALS_LISTED_MAX.into()),
        ("REFUSED_BYTES_WAITING_MAX", REFUSED_BYTES_WAITING_MAX.into()),
        ("JSON_DEPTH_MAX", JSON_DEPTH_MAX.into()),
        ("IN_FLIGHT_BYTES_MAX", IN_FLIGHT_BYTES_MAX.into()),
        ("DECODER_BYTES", DECODER_BYTES.into()),
        ("ZSTD_WINDOW_LOG_MAX", ZSTD_WINDOW_LOG_MAX.into()),
        ("HEADER_BYTES_MAX", HEADER_BYTES_MAX.into()),
        ("DRAIN_BYTES_MAX", DRAIN_BYTES_MAX.into()),
        ("DRAIN_TIME_MAX", DRAIN_TIME_MAX.into()),
        ("DRAINING_CONNECTIONS_MAX", DRAINING_CONNECTIONS_MAX.into()),
        ("IDLE_TIMEOUT", IDLE_TIMEOUT.into()),
        ("IDLE_TIMEOUT_MIN", IDLE_TIMEOUT_MIN.into()),
        ("IDLE_TIMEOUT_MAX", IDLE_TIMEOUT_MAX.into()),
        ("ACK_TIMEOUT", ACK_TIMEOUT.into()),
        ("ACK_TIMEOUT_MIN", ACK_TIMEOUT_MIN.into()),
        ("ACK_TIMEOUT_MAX", ACK_TIMEOUT_MAX.into()),
        ("CONNECTIONS_MAX", CONNECTIONS_MAX.into()),
        ("CONNECTIONS_PER_CLIENT_MAX", CONNECTIONS_PER_CLIENT_MAX.into()),
        ("WRITER_CONNECTIONS_MAX", WRITER_CONNECTIONS_MAX.into()),
        ("TYPE_NAME_BYTES_MAX", TYPE_NAME_BYTES_MAX.into()),
        ("OPEN_TYPES_MAX", OPEN_TYPES_MAX.into()),
        ("SOURCE_BYTES_MAX", SOURCE_BYTES_MAX.into()),
        ("KEY_BYTES_MAX", KEY_BYTES_MAX.into()),
        ("EXPRESSION_BYTES_MAX", EXPRESSION_BYTES_MAX.into()),
        ("EXPRESSION_DEPTH_MAX", EXPRESSION_DEPTH_MAX.into()),
        ("EXPRESSION_STEPS_MAX", EXPRESSION_STEPS_MAX.into()),
        ("CONDITION_STEPS_LEAST", CONDITION_STEPS_LEAST.into()),
        ("CONDITION_STEPS_A_BYTE", CONDITION_STEPS_A_BYTE.into()),
        ("SCHEMA_BYTES_MAX", SCHEMA_BYTES_MAX.into()),
        ("SCHEMA_DOCUMENTS_MAX", SCHEMA_DOCUMENTS_MAX.into()),
        ("SCHEMA_RULES_MAX", SCHEMA_RULES_MAX.into()),
        ("SCHEMA_CHAIN_MAX", SCHEMA_CHAIN_MAX.into()),
        ("SCHEMA_DEPTH_MAX", SCHEMA_DEPTH_MAX.into()),
        ("SCHEMA_STEPS_MAX", SCHEMA_STEPS_MAX.into()),
        ("SCHEMA_ERRORS_MAX", SCHEMA_ERRORS_MAX.into()),
        ("SCHEMA_COMPARISONS_MAX", SCHEMA_COMPARISONS_MAX.into()),
        ("SCHEMA_INFER_MEMBERS_MAX", SCHEMA_INFER_MEMBERS_MAX.into()),
        ("SCHEMA_INFER_SHAPES_MAX", SCHEMA_INFER_SHAPES_MAX.into()),
        ("SCHEMA_MISTAKES_MAX", SCHEMA_MISTAKES_MAX.into()),
        ("TRANSFORM_STEPS_MAX", TRANSFORM_STEPS_MAX.into()),
        ("TRANSFORM_BYTES_MAX", TRANSFORM_BYTES_MAX.into()),
        ("TRANSFORM_WORK_MAX", TRANSFORM_WORK_MAX.into()),
        ("EXPLODE_MAX", EXPLODE_MAX.into()),
        ("TRACED_STEPS_MAX", TRACED_STEPS_MAX.into()),
        ("TRACED_BYTES_MAX", TRACED_BYTES_MAX.into()),
        ("SCHEMA_CHECKS_MAX", SCHEMA_CHECKS_MAX.into()),
        ("TABLE_BYTES_MAX", TABLE_BYTES_MAX.into()),
        ("DEDUPE_VALUES_MAX", DEDUPE_VALUES_MAX.into()),
        ("DEDUPE_VALUES", DEDUPE_VALUES.into()),
        ("AGGREGATE_MEASURES_MAX", AGGREGATE_MEASURES_MAX.into()),
        ("AGGREGATE_GROUP_BY_MAX", AGGREGATE_GROUP_BY_MAX.into()),
        ("AGGREGATE_GROUP_BYTES_MAX", AGGREGATE_GROUP_BYTES_MAX.into()),
        ("AGGREGATE_VALUE_BYTES_MAX", AGGREGATE_VALUE_BYTES_MAX.into()),
        ("AGGREGATE_WINDOW_MIN", AGGREGATE_WINDOW_MIN.into()),
        ("AGGREGATE_WINDOW_MAX", AGGREGATE_WINDOW_MAX.into()),
        ("AGGREGATE_OVERLAP_MAX", AGGREGATE_OVERLAP_MAX.into()),
        ("AGGREGATE_WINDOWS_MAX", AGGREGATE_WINDOWS_MAX.into()),
        ("AGGREGATE_LATENESS", AGGREGATE_LATENESS.into()),
        ("AGGREGATE_LATENESS_MAX", AGGREGATE_LATENESS_MAX.into()),
        ("AGGREGATE_AHEAD", AGGREGATE_AHEAD.into()),
        ("AGGREGATE_IDLE_TIMEOUT", AGGREGATE_IDLE_TIMEOUT.into()),
        ("AGGREGATE_BYTES", AGGREGATE_BYTES.into()),
        ("AGGREGATE_BYTES_MIN", AGGREGATE_BYTES_MIN.into()),
        ("AGGREGATE_TOP_MAX", AGGREGATE_TOP_MAX.into()),
        ("DUPLICATE_WINDOW_BYTES", DUPLICATE_WINDOW_BYTES.into()),
        ("DEAD_LETTERS_MAX", DEAD_LETTERS_MAX.into()),
        ("DEAD_LETTERS_MIN", DEAD_LETTERS_MIN.into()),
        ("DEAD_LETTERS_SET_MAX", DEAD_LETTERS_SET_MAX.into()),
        ("CHOSEN_IDS_MAX", CHOSEN_IDS_MAX.into()),
        ("MEMORY_SET_MIN", MEMORY_SET_MIN.into()),
        ("MEMORY_SET_MAX", MEMORY_SET_MAX.into()),
        ("READ_EVENTS_DEFAULT", READ_EVENTS_DEFAULT.into()),
        ("READ_EVENTS_MAX", READ_EVENTS_MAX.into()),
        ("LOOKUP_IDS_MAX", LOOKUP_IDS_MAX.into()),
        ("READ_TIMEOUT", READ_TIMEOUT.into()),
        ("READ_BYTES_MAX", READ_BYTES_MAX.into()),
        ("READS_IN_FLIGHT_BYTES_MAX", READS_IN_FLIGHT_BYTES_MAX.into()),
        ("BRIDGES_MAX", BRIDGES_MAX.into()),
        ("BRIDGE_HEADERS_MAX", BRIDGE_HEADERS_MAX.into()),
        ("BRIDGE_TIMEOUT", BRIDGE_TIMEOUT.into()),
        ("BRIDGE_TIMEOUT_MIN", BRIDGE_TIMEOUT_MIN.into()),
        ("BRIDGE_TIMEOUT_MAX", BRIDGE_TIMEOUT_MAX.into()),
        ("BRIDGE_WAITING", BRIDGE_WAITING.into()),
        ("BRIDGE_WAITING_MAX", BRIDGE_WAITING_MAX.into()),
        ("PAGE_BYTES", PAGE_BYTES.into()),
        ("RECORD_OVERHEAD_BYTES_MAX", RECORD_OVERHEAD_BYTES_MAX.into()),
        ("BLOCK_BYTES_MAX", BLOCK_BYTES_MAX.into()),
        ("COMMIT_GROUP_BYTES_MAX", COMMIT_GROUP_BYTES_MAX.into()),
        ("SPARE_RECORDS_MAX", SPARE_RECORDS_MAX.into()),
        ("SEGMENT_BYTES_MIN", SEGMENT_BYTES_MIN.into()),
        ("SEGMENT_BYTES_MAX", SEGMENT_BYTES_MAX.into()),
        ("TAIL_CACHE_BYTES_MAX", TAIL_CACHE_BYTES_MAX.into()),
        ("DELIVERY_RECORDS_MAX", DELIVERY_RECORDS_MAX.into()),
        ("DELIVERY_BYTES_MAX", DELIVERY_BYTES_MAX.into()),
        ("STORE_TIMEOUT", STORE_TIMEOUT.into()),
        ("STORE_TIMEOUT_MIN", STORE_TIMEOUT_MIN.into()),
        ("STORE_TIMEOUT_MAX", STORE_TIMEOUT_MAX.into()),
        ("RESPONSE_TIMEOUT", RESPONSE_TIMEOUT.into()),
        ("RESPONSE_TIMEOUT_MIN", RESPONSE_TIMEOUT_MIN.into()),
        ("RESPONSE_TIMEOUT_MAX", RESPONSE_TIMEOUT_MAX.into()),
        ("STORE_CONNECTION_AGE_MIN", STORE_CONNECTION_AGE_MIN.into()),
        ("STORE_CONNECTION_AGE_MAX", STORE_CONNECTION_AGE_MAX.into()),
        ("STORE_CONNECTIONS_MAX", STORE_CONNECTIONS_MAX.into()),
        ("STORE_READERS_MAX", STORE_READERS_MAX.into()),
        ("STORE_REQUEST_BYTES", STORE_REQUEST_BYTES.into()),
        ("STORE_REQUEST_BYTES_MIN", STORE_REQUEST_BYTES_MIN.into()),
        ("STORE_REQUEST_BYTES_MAX", STORE_REQUEST_BYTES_MAX.into()),
        ("STORE_REQUESTS", STORE_REQUESTS.into()),
        ("STORE_REQUESTS_MAX", STORE_REQUESTS_MAX.into()),
        ("OBJECT_BYTES", OBJECT_BYTES.into()),
        ("OBJECT_BYTES_MIN", OBJECT_BYTES_MIN.into()),
        ("OBJECT_BYTES_MAX", OBJECT_BYTES_MAX.into()),
        ("OBJECT_RECORDS", OBJECT_RECORDS.into()),
        ("OBJECT_RECORDS_MAX", OBJECT_RECORDS_MAX.into()),
        ("OBJECT_KEPT_BYTES_MAX", OBJECT_KEPT_BYTES_MAX.into()),
        ("OBJECTS_KEPT_BYTES_MAX", OBJECTS_KEPT_BYTES_MAX.into()),
        ("OBJECTS_IN_FLIGHT", OBJECTS_IN_FLIGHT.into()),
        ("OBJECTS_GATHERED_MAX", OBJECTS_GATHERED_MAX.into()),
        ("OBJECT_CACHE_BYTES", OBJECT_CACHE_BYTES.into()),
        ("OBJECT_CACHE_BYTES_MAX", OBJECT_CACHE_BYTES_MAX.into()),
        ("OBJECT_CACHED_BYTES_MAX", OBJECT_CACHED_BYTES_MAX.into()),
        ("OBJECT_FETCHES_MAX", OBJECT_FETCHES_MAX.into()),
        ("OBJECT_READS_WAITING_MAX", OBJECT_READS_WAITING_MAX.into()),
        ("OBJECT_READ_TIMEOUT", OBJECT_READ_TIMEOUT.into()),
        ("OBJECT_REVALIDATE", OBJECT_REVALIDATE.into()),
        ("OBJECT_AGE_READ_MAX", OBJECT_AGE_READ_MAX.into()),
        ("OBJECT_AGE", OBJECT_AGE.into()),
        ("OBJECT_AGE_MIN", OBJECT_AGE_MIN.into()),
        ("OBJECT_AGE_MAX", OBJECT_AGE_MAX.into()),
        ("RESERVE_BYTES", RESERVE_BYTES.into()),
        ("KEEP_FREE_BYTES", KEEP_FREE_BYTES.into()),
        ("KEEP_FREE_FILES", KEEP_FREE_FILES.into()),
        ("KEEP_FREE_PART", KEEP_FREE_PART.into()),
        ("KEEP_FREE_BYTES_MIN", KEEP_FREE_BYTES_MIN.into()),
        ("KEEP_FREE_PART_MAX", KEEP_FREE_PART_MAX.into()),
        ("STORE_BYTES_PER_BYTE", STORE_BYTES_PER_BYTE.into()),
        ("MEMORY_RESERVE_BYTES", memory::MEMORY_RESERVE_BYTES.into()),
        ("DEAD_LETTER_BYTES", memory::DEAD_LETTER_BYTES.into()),
    ]
}
