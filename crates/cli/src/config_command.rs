//! `forebay config …`: lists the settings, and prints the schema of the configuration file.

use std::io::{self, Write};

use anyhow::bail;
use config::{DeclaredTable, declared, json_schema, kinds_of_intakes, kinds_of_sinks, new_path, plain};
use settings::{Setting, TakesEffect, nearest};

use crate::flags::ConfigCommand;
use crate::output::print;

/// Runs the command and returns the exit code.
///
/// # Errors
/// The message says what failed.
pub(crate) fn run(command: &ConfigCommand) -> anyhow::Result<u8> {
    match command {
        ConfigCommand::Keys(keys) => list(keys.prefix.as_deref().unwrap_or_default())?,
        ConfigCommand::Schema => print(|output| output.write_all(json_schema().as_bytes()))?,
    }
    Ok(0)
}

fn list(prefix: &str) -> anyhow::Result<()> {
    let tables = declared();
    let all = tables.iter().flat_map(|table| table.settings.iter().map(move |setting| (table, *setting)));
    let found: Vec<_> = all.clone().filter(|(table, setting)| has_prefix(table, setting, prefix)).collect();
    if found.is_empty() {
        if let Some(new) = new_path(prefix) {
            bail!("{prefix} is the old name of {new}");
        }
        let keys: Vec<String> = all.map(|(table, setting)| table.key(setting)).collect();
        match nearest(prefix, keys.iter().map(String::as_str)) {
            Some(near) => bail!("no setting begins with {prefix:?}: did you mean {near}?"),
            None => bail!("no setting begins with {prefix:?}: without a prefix the command lists all"),
        }
    }
    print(|output| found.iter().try_for_each(|(table, setting)| write_setting(output, table, setting)))
}

/// Whether the path of the setting begins with the prefix. `X` and `NAME` in the path are any names. The name of a kind of sink or intake
/// selects that kind.
fn has_prefix(table: &DeclaredTable, setting: &Setting, prefix: &str) -> bool {
    let path: Vec<&str> = table.path.iter().copied().chain([setting.name]).collect();
    let parts: Vec<&str> = prefix.split('.').collect();
    let Some((last, outer)) = parts.split_last() else { return true };
    let is_any = |part: &str| matches!(part, "X" | "NAME");
    let is_intake = table.path.first() == Some(&"intakes");
    let is_kind = |part: &str| match is_intake {
        true => kinds_of_intakes().any(|kind| kind == part),
        false => kinds_of_sinks().any(|kind| kind == part),
    };
    if let (Some(kind), Some(named)) = (table.kind, parts.get(1).filter(|part| is_kind(part)))
        && kind != *named
    {
        return false;
    }
    let is_outer = outer.iter().zip(&path).all(|(wanted, part)| wanted == part || is_any(part));
    let is_last = path.get(outer.len()).is_some_and(|part| part.starts_with(last) || is_any(part));
    is_outer && is_last
}

fn write_setting(output: &mut impl Write, table: &DeclaredTable, setting: &Setting) -> io::Result<()> {
    let of_kind = table.kind.map_or_else(String::new, |kind| format!(" (kind = \"{kind}\")"));
    writeln!(output, "{}{of_kind}", table.key(setting))?;
    writeln!(output, "    {}", plain(setting.text))?;
    writeln!(output, "    type      {}", plain(&setting.kind.to_string()).replace('`', ""))?;
    writeln!(output, "    default   {}", plain(&setting.default.to_string()).replace('`', ""))?;
    if !setting.example.is_empty() {
        writeln!(output, "    example   {} = {}", setting.name, setting.example)?;
    }
    if let Some(variable) = table.variable(setting) {
        writeln!(output, "    variable  {variable}")?;
    }
    let takes_effect = match table.takes_effect(setting) {
        TakesEffect::Reload => "a reload",
        TakesEffect::Restart => "a restart",
    };
    writeln!(output, "    changes   with {takes_effect}\n")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails loudly")]
mod tests {
    use super::*;

    fn keys(prefix: &str) -> Vec<String> {
        let tables = declared();
        let all = tables.iter().flat_map(|table| table.settings.iter().map(move |setting| (table, *setting)));
        all.filter(|(table, setting)| has_prefix(table, setting, prefix))
            .map(|(table, setting)| table.key(setting))
            .collect()
    }

    #[test]
    fn prefix_selects_settings_by_their_path() {
        assert_eq!(keys("gateway.ack"), ["gateway.ack_timeout"]);
        assert_eq!(keys("log"), ["log.format", "log.level"]);
        assert_eq!(keys("types.access.time_z"), ["types.X.time_zone"]);
        assert_eq!(keys("types.access.aggregate.hits.win"), ["types.X.aggregate.NAME.window"]);
        assert_eq!(keys("sinks.redis.mode"), ["sinks.X.mode"]);
        assert_eq!(
            keys("sinks.null"),
            ["kind", "from", "max_backlog", "max_dead_letters"].map(|name| format!("sinks.X.{name}"))
        );
        assert_eq!(
            keys("intakes.elasticsearch").first_chunk(),
            Some(&["kind", "listen", "path", "dedupe", "type"].map(|name| format!("intakes.X.{name}")))
        );
        assert!(keys("sinks.redis").len() < 20 && keys("sinks.archive").len() > 80);
        assert!(keys("").len() > 60 && keys("types.access").len() > 20);
        assert!(keys("gatway").is_empty() && keys("gateway.listen.more").is_empty());
        assert!(list("gateway.listn").unwrap_err().to_string().ends_with("did you mean gateway.listen?"));
        for (old, new) in
            [("gateway.open", "gateway.allow_anonymous"), ("sinks.archive.keep", "sinks.archive.retention")]
        {
            assert_eq!(list(old).unwrap_err().to_string(), format!("{old} is the old name of {new}"));
        }
    }

    #[test]
    fn setting_is_shown_with_all_its_facts() {
        let table = declared().into_iter().find(|table| table.path == ["gateway"]).unwrap();
        let setting = table.settings.iter().find(|setting| setting.name == "shards").unwrap();
        let mut shown = Vec::new();
        write_setting(&mut shown, &table, setting).unwrap();
        let expected = "gateway.shards\n    threads that accept events, each with its shard of the journal\n    type      integer, 1 to 1024\n    \
                        default   cores − 1, at least 1\n    example   shards = 2\n    variable  FOREBAY_GATEWAY_SHARDS\n    changes   with a restart\n\n";
        assert_eq!(String::from_utf8(shown).unwrap(), expected);
    }
}
