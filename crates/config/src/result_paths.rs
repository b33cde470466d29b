//! Warns of settings that name a place which no result of an aggregate has: the aggregate's own settings say what its results are.

use ::schema::Schema;
use json::JsonPointer;
use schema_tools::Reachability;
use settings::{Diagnostic, Section, SettingsReader, SourceSpan};
use toml::Spanned;
use toml::de::DeValue;

use crate::event_types::event_type::Types;
use crate::event_types::result_schema;
use crate::sinks::SinkName;

/// The settings of sinks that are pointers into events, or have some within them.
const POINTERS: &[&str] = &["columns", "conflict", "field", "by", "object_from", "object_type_from", "shard_by"];

/// Warns of pointers in the settings of sinks that get only results, if no result has such a place.
pub(crate) fn warn(reader: &mut SettingsReader<'_>, sections: &[Section<'_>], types: &Types) {
    for section in sections {
        let Ok(name) = SinkName::new(section.name()) else { continue };
        let schemas = schemas_of(&name, types);
        let mut reaches: Vec<_> = schemas.iter().map(Reachability::new).collect();
        if reaches.is_empty() {
            continue;
        }
        for key in POINTERS {
            let Some((key, value)) = section.entry(key) else { continue };
            for (path, span, pointer) in pointers(section, key.get_ref(), value) {
                warn_of(reader, (&path, span), &pointer, &mut reaches);
            }
        }
    }
}

/// The schemas of all that a sink gets; none if it gets other events too.
fn schemas_of(sink: &SinkName, types: &Types) -> Vec<Schema> {
    let all = || types.named.values().chain(&types.others);
    if all().any(|config| config.routes.iter().any(|route| route.to == *sink)) {
        return Vec::new();
    }
    let aggregates = all().flat_map(|config| &config.aggregates);
    let of_sink = aggregates.filter(|aggregate| aggregate.routes.iter().any(|route| route.to == *sink));
    let schemas: Option<Vec<_>> = of_sink.map(|aggregate| result_schema::schema(&aggregate.rules)).collect();
    schemas.unwrap_or_default()
}

/// All pointers in a value, each with its setting.
fn pointers(section: &Section<'_>, path: &str, value: &Spanned<DeValue<'_>>) -> Vec<(String, SourceSpan, JsonPointer)> {
    match value.get_ref() {
        DeValue::String(text) => {
            let pointer = text.strip_prefix('/').and_then(|_| text.parse().ok());
            pointer
                .map(|pointer| (section.key_path(path).to_string(), section.span_of(value), pointer))
                .into_iter()
                .collect()
        }
        DeValue::Table(entries) => entries
            .iter()
            .flat_map(|(key, inner)| pointers(section, &format!("{path}.{}", key.get_ref()), inner))
            .collect(),
        _ => Vec::new(),
    }
}

fn warn_of(
    reader: &mut SettingsReader<'_>,
    (path, span): (&str, SourceSpan),
    pointer: &JsonPointer,
    reaches: &mut [Reachability<'_>],
) {
    let found: Result<Vec<_>, ()> = reaches.iter_mut().map(|reach| reach.find(pointer).err().ok_or(())).collect();
    // One of the types can have it.
    let Ok(unreachable) = found else { return };
    let Some(first) = unreachable.into_iter().next() else { return };
    let title = format!("unused path in `{path}`: no result of an aggregate has it");
    let help = first.nearest.map(|nearest| format!("did you mean `{nearest}`?"));
    reader.push(Diagnostic::warning(title, span, first.why).help(help));
}
