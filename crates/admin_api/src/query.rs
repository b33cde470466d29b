//! The query of a request for dead letters: read by the admin API, written by the command.

use std::collections::BTreeSet;

use dead_letters::{ChosenIds, DeadCursor, DeadFilter, DeadOrder};
use text::{percent, rfc3339};

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadQuery {
    pub filter: DeadFilter,
    pub limit: Option<u64>,
    /// The order of a list.
    pub order: DeadOrder,
    /// The end of the page before.
    pub cursor: Option<DeadCursor>,
    /// Only what the action would do.
    pub dry_run: bool,
    /// The number that a dry run has counted: the action is rejected if there are more or fewer now.
    pub expect: Option<u64>,
    /// All dead letters, without a filter.
    pub all: bool,
    /// A lane that accepts its store resends events that the store may have.
    pub resend: bool,
    /// The request has `again`, the old name of `resend`, which is accepted until 0.2.
    pub has_again: bool,
    /// The gateway id of the data directory to use.
    pub origin: Option<String>,
}

impl DeadQuery {
    /// Parses the text after the question mark, or returns its error.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut query = Self::default();
        for pair in pairs(text) {
            let (key, value) = pair?;
            let wrong = |wanted: &str| format!("{key}={value}: {wanted}");
            let filter = &mut query.filter;
            match key {
                "sink" => filter.sink = Some(value),
                "type" => filter.type_name = Some(value),
                "id" => filter.ids = Some(value.parse().map_err(|error| format!("{key}: {error}"))?),
                "since" => filter.since = Some(rfc3339::parse(&value).map_err(|error| wrong(&error))?),
                "until" => filter.until = Some(rfc3339::parse(&value).map_err(|error| wrong(&error))?),
                "reason" => filter.reason = Some(value),
                "reason_group" => filter.reason_group = Some(value),
                "where" => filter.condition = Some(value.parse().map_err(|error| wrong(&format!("{error}")))?),
                "limit" => query.limit = Some(value.parse().map_err(|_| wrong("expected a number"))?),
                "order" => query.order = value.parse().map_err(|error| wrong(&format!("{error}")))?,
                "cursor" => query.cursor = Some(value.parse().map_err(|error| wrong(&format!("{error}")))?),
                "dry_run" => query.dry_run = value.parse().map_err(|_| wrong("expected true or false"))?,
                "expect" => query.expect = Some(value.parse().map_err(|_| wrong("expected a number"))?),
                "all" => query.all = value.parse().map_err(|_| wrong("expected true or false"))?,
                "resend" => query.resend = value.parse().map_err(|_| wrong("expected true or false"))?,
                "again" => {
                    query.resend = value.parse().map_err(|_| wrong("expected true or false"))?;
                    query.has_again = true;
                }
                "origin" => query.origin = Some(value),
                _ => {
                    return Err(format!(
                        "unknown parameter {key}: use sink, type, id, since, until, reason, reason_group, where, limit, \
                         order, cursor, dry_run, expect, all, resend or origin"
                    ));
                }
            }
        }
        Ok(query)
    }

    /// Writes it, with the question mark.
    pub fn write(&self) -> String {
        let order = (self.order != DeadOrder::default()).then(|| self.order.as_str().to_owned());
        let pairs = [
            ("limit", self.limit.map(|limit| limit.to_string())),
            ("order", order),
            ("cursor", self.cursor.as_ref().map(ToString::to_string)),
            ("dry_run", self.dry_run.then(|| "true".to_owned())),
            ("expect", self.expect.map(|letters| letters.to_string())),
            ("all", self.all.then(|| "true".to_owned())),
            ("resend", self.resend.then(|| "true".to_owned())),
            ("origin", self.origin.clone()),
        ];
        let set = filter_pairs(&self.filter, ToString::to_string).into_iter().chain(pairs);
        let set = set.filter_map(|(key, value)| Some(format!("{key}={}", percent::encode(&value?))));
        format!("?{}", set.collect::<Vec<_>>().join("&"))
    }

    /// The filter and the limit for the operator, not encoded.
    #[must_use]
    pub fn shown(&self) -> String {
        let limit = [("limit", self.limit.map(|limit| limit.to_string()))];
        let set = filter_pairs(&self.filter, ChosenIds::shown).into_iter().chain(limit);
        let shown: Vec<String> = set.filter_map(|(key, value)| Some(format!("{key}={}", value?))).collect();
        if shown.is_empty() { "all dead letters".into() } else { shown.join(", ") }
    }
}

fn filter_pairs(filter: &DeadFilter, ids_as: fn(&ChosenIds) -> String) -> [(&'static str, Option<String>); 8] {
    let DeadFilter { sink, type_name, ids, since, until, reason, reason_group, condition } = filter;
    [
        ("sink", sink.clone()),
        ("type", type_name.clone()),
        ("id", ids.as_ref().map(ids_as)),
        ("since", since.map(rfc3339::format)),
        ("until", until.map(rfc3339::format)),
        ("reason", reason.clone()),
        ("reason_group", reason_group.clone()),
        ("where", condition.as_ref().map(ToString::to_string)),
    ]
}

/// The keys of a query, each with its value. One that is repeated is an error: a proxy and this program could read different values.
pub fn pairs(query: &str) -> impl Iterator<Item = Result<(&str, String), String>> {
    let mut seen = BTreeSet::new();
    query.split('&').filter(|pair| !pair.is_empty()).map(move |pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        if !seen.insert(key) {
            return Err(format!("parameter {key} is given more than once: send it once"));
        }
        let value = percent::decode(value).ok_or_else(|| format!("parameter {key} must be percent-encoded UTF-8"))?;
        Ok((key, value))
    })
}

/// The same of a request that has only these parameters: others are errors.
pub fn known_pairs<'q>(query: &'q str, known: &[&str]) -> impl Iterator<Item = Result<(&'q str, String), String>> {
    pairs(query).map(move |pair| {
        let pair = pair?;
        if known.contains(&pair.0) {
            return Ok(pair);
        }
        Err(format!("unknown parameter {}: use {}", pair.0, known.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(number: u8) -> ChosenIds {
        let ids: Vec<_> = (0..number).map(|last| format!("2651fa94-4d60-8482-855f-ec6e000000{last:02}")).collect();
        ids.join(",").parse().unwrap()
    }

    #[test]
    fn query_round_trips() {
        let filter = DeadFilter {
            sink: Some("a&b=é %".into()),
            type_name: Some("t".into()),
            ids: Some(ids(2)),
            since: Some(1_000_000),
            until: Some(2),
            reason: Some("no \"x\" & y".into()),
            reason_group: Some("row … of '…'".into()),
            condition: "status == 200 && path != 'ü'".parse().ok(),
        };
        let query = DeadQuery {
            filter,
            limit: Some(3),
            order: DeadOrder::Descending,
            cursor: "7.a&b".parse().ok(),
            dry_run: true,
            expect: Some(9),
            all: true,
            resend: true,
            has_again: false,
            origin: Some("0f".into()),
        };
        let text = query.write();
        assert_eq!(DeadQuery::read(text.strip_prefix('?').unwrap()), Ok(query), "{text}");
        assert_eq!(DeadQuery::read(""), Ok(DeadQuery::default()));
    }

    #[test]
    fn old_name_of_resend_is_accepted() {
        let query = DeadQuery { resend: true, has_again: true, ..DeadQuery::default() };
        assert_eq!(DeadQuery::read("again=true"), Ok(query.clone()));
        assert_eq!(query.write(), "?resend=true");
    }

    #[test]
    fn large_choice_is_shown_in_short() {
        let filter = DeadFilter { sink: Some("a".into()), ids: Some(ids(99)), ..DeadFilter::default() };
        let shown = DeadQuery { filter, ..DeadQuery::default() }.shown();
        assert_eq!(shown, format!("sink=a, id={} and 96 others", ids(3)));
    }

    #[test]
    fn query_mistakes_are_named() {
        for (text, wanted) in [
            ("sinks=a", "unknown parameter sinks"),
            (
                "id=1",
                "id: '1' isn't valid: an event id is a UUID: 32 hexadecimal digits in groups of 8-4-4-4-12. Separate ids with single commas",
            ),
            ("id=2651fa94-4d60-8482-855f-ec6e00000007,", "id: '' isn't valid"),
            ("since=now", "a time"),
            ("where=status%20%3D", "status ="),
            ("limit=-1", "expected a number"),
            ("all=yes", "true or false"),
            ("dry_run=1", "true or false"),
            ("expect=", "expected a number"),
            ("order=new", "asc or desc"),
            ("cursor=local", "`next`"),
            ("sink=%f", "percent"),
            ("sink=%ff", "percent"),
            ("sink=a&dry_run=true&dry_run=false", "dry_run is given more than once"),
        ] {
            let wrong = DeadQuery::read(text).unwrap_err();
            assert!(wrong.contains(wanted), "{text}: {wrong}");
        }
    }
}
