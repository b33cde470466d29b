//! `refused_to` of a type: the type as which its rejected events are stored.

use event::TypeName;
use settings::{Diagnostic, Located, Section, Setting, SettingsReader, nearest};

const KEY: &str = "refused_to";
/// Its declaration.
pub(crate) const REFUSED_TO: Setting = Setting::text(
    KEY,
    "the type that stores rejected events (400, 409, 422): the [quarantine](../../guides/quarantine.md). It has \
     its own table and no `refused_to`. At most 100 at a time, and 10 a second",
)
.example("\"refused\"");

/// A `refused_to` as it is written.
pub(crate) struct RefusedToSetting {
    /// The name of the table that has it.
    pub(crate) of: String,
    path: String,
    to: Located<String>,
}

pub(crate) fn read(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> Option<RefusedToSetting> {
    let to = reader.text(section, KEY, |text| Ok(text.to_owned()))?;
    Some(RefusedToSetting { of: section.name().to_owned(), path: section.key_path(KEY).to_string(), to })
}

/// The types as which rejected events are stored, for each valid one of `written`. `declared` are the types with
/// separate tables.
pub(crate) fn resolve<'w>(
    reader: &mut SettingsReader<'_>,
    declared: &[TypeName],
    written: &'w [RefusedToSetting],
) -> Vec<(&'w str, TypeName)> {
    let mut resolved = Vec::new();
    for one in written {
        match checked(declared, written, one) {
            Ok(to) => resolved.push((one.of.as_str(), to)),
            Err(mistake) => reader.push(*mistake),
        }
    }
    resolved
}

fn checked(
    declared: &[TypeName],
    written: &[RefusedToSetting],
    one: &RefusedToSetting,
) -> Result<TypeName, Box<Diagnostic>> {
    let RefusedToSetting { of, path, to: Located { value, span } } = one;
    let mistake = |title: String, label: &str, help: String| {
        Err(Box::new(Diagnostic::new(title, span.clone(), label).help(help)))
    };
    let name = match TypeName::new(value) {
        Ok(name) => name,
        Err(error) => {
            let help = "name a type with a separate table".to_owned();
            return mistake(format!("invalid value for `{path}`"), &error.to_string(), help);
        }
    };
    if name.as_str() == of {
        let help = "name another type, with a separate table, such as [types.rejected]".to_owned();
        return mistake(
            format!("invalid value for `{path}`: it names the type itself"),
            "rejected events would be events of this type",
            help,
        );
    }
    if !declared.contains(&name) {
        let others = declared.iter().map(TypeName::as_str).filter(|other| other != of);
        let help = match nearest(name.as_str(), others) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("add [types.{name}] with routes"),
        };
        return mistake(
            format!("invalid value for `{path}`: this type has no table"),
            "this type is not in the file",
            help,
        );
    }
    if let Some(next) = written.iter().find(|next| next.of == name.as_str()) {
        let title = format!("conflict: `{path}` names a type that also has `{KEY}`");
        let help = format!("remove one of them: if `{name}` rejects a quarantined event, it is only counted");
        let mistake =
            Diagnostic::new(title, span.clone(), "names this type").also(next.to.span.clone(), "its own quarantine");
        return Err(Box::new(mistake.help(help)));
    }
    Ok(name)
}
