//! What was refused, in the log: a few lines in a second, and how many more there were. No line has a value of an event in it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use gateway::{GatewayCounters, RefusalNews, RefusalSample};

/// How often the log tells what was refused.
const EVERY: Duration = Duration::from_secs(1);

/// A line of the log.
struct Line<'a>(&'a RefusalSample);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RefusalSample { code, pointer, type_name, source, client, line, at: _ } = self.0;
        write!(f, "refused: code={}", code.as_str())?;
        if !type_name.is_empty() {
            write!(f, " type={type_name}")?;
        }
        if !source.is_empty() {
            write!(f, " source={source}")?;
        }
        write!(f, " client={client}")?;
        if let Some(pointer) = pointer {
            write!(f, " pointer={pointer:?}")?;
        }
        line.map_or(Ok(()), |line| write!(f, " line={line}"))
    }
}

/// Tells what is refused, for as long as the process runs.
pub(crate) async fn follow(gateway: Arc<GatewayCounters>) {
    loop {
        let RefusalNews { samples, left_out } = gateway.refusal_news().await;
        samples.iter().for_each(|sample| super::bounded_info_at(sample.at, Line(sample)));
        match left_out {
            0 => {}
            1 => super::bounded_info("refused: 1 more; forebay_refusals_total counts all by code, type and source"),
            more => super::bounded_info(format_args!(
                "refused: {more} more; forebay_refusals_total counts all by code, type and source"
            )),
        }
        tokio::time::sleep(EVERY).await;
    }
}

#[cfg(test)]
mod tests {
    use gateway::ErrorCode;

    use super::*;

    #[test]
    fn a_line_has_what_is_known() {
        let all = RefusalSample {
            at: 0,
            code: ErrorCode::Schema,
            pointer: Some("/a \"b".into()),
            type_name: "orders".into(),
            source: "shop".into(),
            client: [10, 0, 0, 7].into(),
            line: Some(3),
        };
        let expected = "refused: code=schema type=orders source=shop client=10.0.0.7 pointer=\"/a \\\"b\" line=3";
        assert_eq!(Line(&all).to_string(), expected);
        let none = RefusalSample {
            at: 0,
            code: ErrorCode::Unauthorized,
            pointer: None,
            type_name: "".into(),
            source: "".into(),
            client: std::net::Ipv6Addr::LOCALHOST.into(),
            line: None,
        };
        assert_eq!(Line(&none).to_string(), "refused: code=unauthorized client=::1");
    }
}
