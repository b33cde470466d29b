//! `forebay tap`: live samples of the events that pass a point of a process, a line each.

use std::io::{self, Write};
use std::sync::atomic::AtomicBool;

use anyhow::anyhow;
use config::Role;
use serde_json::Value;
use settings::Environment;
use text::{escape_control, percent};

use crate::admin_client::AdminClient;
use crate::errors::cannot;
use crate::flags::TapFlags;
use crate::output::Output;
use crate::table::{shortened, terminal_width};
use admin_api::paths::API_TAP;

/// Prints events until the process ends the stream, or a signal ends the command.
///
/// # Errors
/// The process can't be asked, rejects the request, or has ended.
pub(crate) fn run(flags: &TapFlags, role: Option<Role>, environment: &Environment) -> anyhow::Result<u8> {
    let process = AdminClient::find(&flags.server, flags.role.or(role).unwrap_or(Role::Serve), environment)?;
    let (is_json, mut written) = (flags.output.is_json(), Ok(()));
    let mut take = |line: &[u8]| {
        written = print(&String::from_utf8_lossy(line), is_json);
        written.is_ok()
    };
    let ended = process.lines(&query(flags), &AtomicBool::new(false), &mut take)?;
    written.map_err(cannot("write to the standard output"))?;
    ended.map_err(|problem| process.refused(problem))?;
    Err(anyhow!("the process at {} has ended the stream, because it stops: repeat the command", process.address()))
}

fn query(flags: &TapFlags) -> String {
    let TapFlags { point, type_name, source, sink, condition, rate, .. } = flags;
    let pairs = [
        ("at", point.clone()),
        ("type", type_name.clone()),
        ("source", source.clone()),
        ("sink", sink.clone()),
        ("where", condition.as_ref().map(ToString::to_string)),
        ("rate", Some(rate.to_string())),
    ];
    let set = pairs.into_iter().filter_map(|(key, value)| Some(format!("{key}={}", percent::encode(&value?))));
    format!("{API_TAP}?{}", set.collect::<Vec<_>>().join("&"))
}

/// Prints a line of the stream. A client's text must not be obeyed by the terminal.
fn print(line: &str, is_json: bool) -> io::Result<()> {
    let Ok(value) = serde_json::from_str::<Value>(line) else { return Ok(()) };
    if value.get("beat").is_some() {
        return Ok(());
    }
    if is_json {
        // In JSON only strings have such characters, where the escape means the same.
        return writeln!(Output::lock(), "{}", escape_control(line));
    }
    if value.get("sum").is_some() {
        return note(&value).map_or(Ok(()), |note| writeln!(io::stderr(), "{note}"));
    }
    let text = shown(&value, line);
    let text = escape_control(&text);
    writeln!(Output::lock(), "{}", terminal_width().map_or_else(|| text.to_string(), |width| shortened(&text, width)))
}

/// Says of how many events those shown are a sample; nothing if they are all that match.
fn note(sum: &Value) -> Option<String> {
    let [passed, looked_at, matched, shown] =
        ["passed", "looked_at", "matched", "shown"].map(|name| sum[name].as_u64().unwrap_or(0));
    (looked_at < passed || shown < matched)
        .then(|| format!("# last 1 s: {passed} passed, {looked_at} looked at, {matched} matched, {shown} shown"))
}

/// An event in words, with the payload unchanged.
fn shown(event: &Value, line: &str) -> String {
    let text = |name: &str| event[name].as_str().filter(|text| !text.is_empty());
    // RFC 3339: the time of day is enough for what happens now.
    let time = text("time").and_then(|time| time.get(11..23)).unwrap_or_default();
    let mut parts = vec![time.to_owned()];
    parts.extend(
        ["at", "type", "sink", "source", "position", "code", "pointer"].into_iter().filter_map(text).map(str::to_owned),
    );
    let number = |name: &str, unit: &str| event[name].as_i64().map(|number| format!("{unit}{number}"));
    parts.extend(number("line", "line "));
    parts.extend(number("after_ms", "+").map(|after| after + " ms"));
    parts.extend(text("reason").map(|reason| format!("({reason})")));
    // The payload is the last member.
    let payload = line.split_once(",\"payload\":").and_then(|(_, rest)| rest.strip_suffix('}'));
    parts.extend(payload.map(str::to_owned).or_else(|| text("payload_head").map(|head| format!("{head}…"))));
    if event["bytes"].is_u64() && event["payload"].is_null() && event["payload_head"].is_null() {
        parts.push("(hidden until its steps have run)".to_owned());
    }
    parts.join("  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> String {
        shown(&serde_json::from_str(line).unwrap(), line)
    }

    #[test]
    fn event_is_shown_with_its_payload_unchanged() {
        let line = r#"{"n":1,"at":"accepted","time":"2026-11-26T10:04:11.402123Z","id":"x","type":"access","source":"shop","position":"0:118","bytes":17,"payload":{"b":1.50, "a":"}"}}"#;
        assert_eq!(of(line), r#"10:04:11.402  accepted  access  shop  0:118  {"b":1.50, "a":"}"}"#);
        let line = r#"{"n":2,"at":"stored","time":"2026-11-26T10:04:11.402123Z","sink":"warehouse","type":"access","source":"","position":"0:90","after_ms":38,"bytes":9000,"payload_head":"{\"a\""}"#;
        assert_eq!(of(line), "10:04:11.402  stored  access  warehouse  0:90  +38 ms  {\"a\"…");
        let line = r#"{"n":3,"at":"refused","time":"2026-11-26T10:04:11.402123Z","type":"order","source":"shop","code":"schema","pointer":"/n","line":17}"#;
        assert_eq!(of(line), "10:04:11.402  refused  order  shop  schema  /n  line 17");
        let line =
            r#"{"n":4,"at":"received","time":"2026-11-26T10:04:11.402123Z","type":"login","source":"","bytes":7}"#;
        assert!(of(line).ends_with("login  (hidden until its steps have run)"), "{}", of(line));
    }

    #[test]
    fn note_counts_events_that_are_not_shown() {
        let sum = |passed, looked_at, matched, shown| {
            note(&serde_json::json!({"passed": passed, "looked_at": looked_at, "matched": matched, "shown": shown}))
        };
        assert_eq!(sum(5, 5, 3, 3), None);
        assert_eq!(sum(8_790, 2_000, 61, 50).unwrap(), "# last 1 s: 8790 passed, 2000 looked at, 61 matched, 50 shown");
        assert!(sum(9, 8, 0, 0).is_some() && sum(9, 9, 9, 8).is_some());
    }
}
