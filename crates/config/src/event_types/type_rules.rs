//! `type_rules` and `unknown_type` of `[gateway]`: the types of events whose type isn't named, or is unknown.

use std::fmt::Display;

use event::TypeName;
use expression::Expression;
use schema_tools::Reachability;
use settings::{
    Diagnostic, EXPRESSION, InvalidValue, Kind, Located, Section, Setting, SettingsReader, SourceSpan, nearest,
};
use toml::de::DeValue;

use crate::event_types::conditional::{self, Form, Worded};
use crate::event_types::event_type::Types;
use crate::event_types::unreachable_paths;

/// The setting that is a list of tables.
pub(crate) const RULES: Setting = Setting::new(
    "type_rules",
    Kind::List(&Kind::Table(RULE)),
    "rules for events whose type is in neither path, header nor pointer: [types by rule](gateway.md#types-by-rule-and-unknown-types)",
)
.example("[{ type = \"access\", when = \"has(method)\" }]");
const RULE: &[Setting] = &[
    Setting::text(FORM.key, "the type of the events").required().example("\"access\""),
    Setting::new("when", EXPRESSION, "the condition").required().example("\"has(method)\""),
];
/// The setting of the type of other events.
pub(crate) const UNKNOWN: Setting = Setting::text(
    "unknown_type",
    "the type of events with an [unknown type](gateway.md#types-by-rule-and-unknown-types). If unset, they are rejected",
)
.example("\"other\"");
/// As many rules as are asked of an event.
const RULES_MAX: usize = 64;
const FORM: Form =
    Form { key: "type", what: "type", example: "a rule is { type = \"access\", when = \"has(method)\" }" };

/// The rules that decide the type of an event if its request doesn't.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Naming {
    /// Asked in this order.
    pub rules: Vec<TypeRule>,
    /// The type of events of unknown types, if they are accepted.
    pub unknown: Option<TypeName>,
}

/// Events on which the condition is true are of this type.
#[derive(Clone, Debug)]
pub struct TypeRule {
    pub of: TypeName,
    pub when: Expression,
}

impl PartialEq for TypeRule {
    fn eq(&self, other: &Self) -> bool {
        self.of == other.of && self.when.to_string() == other.when.to_string()
    }
}

impl Eq for TypeRule {}

pub(crate) fn read(reader: &mut SettingsReader<'_>, section: &Section<'_>, types: &Types) -> Naming {
    Naming { rules: rules(reader, section, types), unknown: unknown(reader, section, types) }
}

fn rules(reader: &mut SettingsReader<'_>, section: &Section<'_>, types: &Types) -> Vec<TypeRule> {
    let Some((span, value)) = section.get(RULES.name) else { return Vec::new() };
    let path = section.key_path(RULES.name);
    let Some(list) = value.as_array() else {
        reader.wrong_kind::<()>(
            &path,
            span,
            value,
            "a list of rules, such as [{ type = \"access\", when = \"has(method)\" }]",
        );
        return Vec::new();
    };
    if list.len() > RULES_MAX {
        let title = format!("invalid value for `{path}`: {} rules", list.len());
        reader.push(Diagnostic::new(title, span, format!("at most {RULES_MAX} are allowed")));
    }
    let rules = list.iter().enumerate().filter_map(|(index, element)| {
        let name = format_args!("{path}[{index}]");
        rule(reader, (&name, section.span_of(element)), element.get_ref(), types)
    });
    rules.collect()
}

fn rule(
    reader: &mut SettingsReader<'_>,
    (path, span): (&dyn Display, SourceSpan),
    value: &DeValue<'_>,
    types: &Types,
) -> Option<TypeRule> {
    let Some(entries) = value.as_table() else {
        return reader.wrong_kind(path, span, value, "a rule, such as { type = \"access\", when = \"has(method)\" }");
    };
    let errors_before = reader.errors();
    let (of, when) = conditional::read(reader, &FORM, (path, span.clone()), entries)?;
    if when.is_none() && reader.errors() == errors_before {
        let title = format!("missing setting `when` in `{path}`");
        reader.push(Diagnostic::new(title, span, "has no `when`").help(FORM.example.to_owned()));
    }
    let of = known(reader, &format_args!("{path}.type"), of, types)?;
    let when = when?;
    warn(reader, &of, &when, types);
    Some(TypeRule { of, when: when.condition })
}

/// Warns of values that a rule needs but the schema of its type rejects: the rule accepts no event. A rule that
/// requires the absence of a value isn't reported: the event's type isn't known yet.
fn warn(reader: &mut SettingsReader<'_>, of: &TypeName, when: &Worded<Expression>, types: &Types) {
    let config = types.named.get(of).or(types.others.as_ref());
    if let Some(schema) = config.and_then(|config| config.schema.as_ref()) {
        unreachable_paths::condition(reader, when, when.condition.needed(), &mut Reachability::new(&schema.compiled));
    }
}

fn unknown(reader: &mut SettingsReader<'_>, section: &Section<'_>, types: &Types) -> Option<TypeName> {
    let found = reader.text(section, UNKNOWN.name, |text| Ok::<_, InvalidValue>(text.to_owned()))?;
    let path = section.key_path(UNKNOWN.name);
    if types.others.is_some() {
        let title = format!("unused setting `{path}`");
        let help = "[types.\"*\"] accepts events of every type: remove one of them".to_owned();
        reader.push(Diagnostic::new(title, found.span, "every type is accepted, so this is never used").help(help));
        return None;
    }
    known(reader, &path, found, types)
}

/// A type that events are accepted as.
fn known(
    reader: &mut SettingsReader<'_>,
    path: &dyn Display,
    found: Located<String>,
    types: &Types,
) -> Option<TypeName> {
    let name = match TypeName::new(&found.value) {
        Ok(name) if types.named.contains_key(&name) || types.others.is_some() => return Some(name),
        Ok(name) => name,
        Err(error) => {
            let title = format!("invalid value for `{path}`");
            reader.push(Diagnostic::new(title, found.span, error.to_string()));
            return None;
        }
    };
    let title = format!("invalid value for `{path}`: there is no such type");
    let help = match nearest(name.as_str(), types.named.keys().map(TypeName::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("add [types.{name}]"),
    };
    reader.push(Diagnostic::new(title, found.span, "no such type").help(help));
    None
}
