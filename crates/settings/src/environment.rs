//! The environment as a value, for tests: the variable of a setting, and `${NAME}` in strings.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::ops::Range;

use crate::files;

/// The prefix of Forebay's variables.
pub const PREFIX: &str = "FOREBAY_";

/// The variables of a process. Those whose names are not UTF-8 are left out: no setting has such a name.
#[derive(Clone, Debug, Default)]
pub struct Environment(BTreeMap<String, OsString>);

/// The suffix of a variable that names the file with another variable's value, such as a secret of Docker or Kubernetes.
pub const FILE: &str = "_FILE";
/// The largest file. Secrets are short, so a larger one is the wrong file.
const FILE_BYTES_MAX: u64 = 64 * 1024;

/// The value of a variable, and its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariableValue<'e> {
    /// The text.
    pub text: Cow<'e, str>,
    /// The path of its file, if the value was read from one.
    pub file: Option<&'e str>,
}

/// Why a variable has no usable value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvalidVariable {
    /// The variable or its file is not UTF-8.
    NotText,
    /// The variable is set, and the one that names its file is set too.
    SetTwice,
    /// Its file can't be read: the reason, without the path.
    Unreadable(String),
    /// It begins or ends with white space or a control character, apart from line breaks at its end.
    Padded,
}

impl Environment {
    /// The variables of a process, as `std::env::vars_os` returns them.
    #[must_use]
    pub fn of(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        Self(variables.into_iter().filter_map(|(name, value)| Some((name.into_string().ok()?, value))).collect())
    }

    /// The value of a variable, or else the content of the file in the variable with the suffix [`FILE`], without the line breaks at its end.
    /// An empty variable counts as not set, because scripts often can't omit one.
    pub fn get(&self, name: &str) -> Option<Result<VariableValue<'_>, InvalidVariable>> {
        match (self.set(name), self.set(&format!("{name}{FILE}"))) {
            (None, None) => None,
            (Some(_), Some(_)) => Some(Err(InvalidVariable::SetTwice)),
            (Some(value), None) => Some(value.and_then(|text| {
                let text = unpadded(text)?.into();
                Ok(VariableValue { text, file: None })
            })),
            (None, Some(path)) => Some(path.and_then(|path| {
                let path = unpadded(path)?;
                let text = content(path)?.into();
                Ok(VariableValue { text, file: Some(path) })
            })),
        }
    }

    /// The path of the file with a variable's value, if there is one, also if it can't be read.
    pub fn path_of_file(&self, name: &str) -> Option<String> {
        self.set(&format!("{name}{FILE}"))?.ok().map(str::to_owned)
    }

    /// The value of a variable as it is set, which may be a secret. `None` if it isn't set, or isn't UTF-8.
    pub fn raw(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.to_str()
    }

    fn set(&self, name: &str) -> Option<Result<&str, InvalidVariable>> {
        let value = self.0.get(name)?.to_str().map(without_line_breaks).ok_or(InvalidVariable::NotText);
        (value != Ok("")).then_some(value)
    }

    /// Whether there is any variable that could be a setting's.
    #[must_use]
    pub fn has_own(&self) -> bool {
        self.0.keys().any(|name| name.starts_with(PREFIX))
    }

    /// The names that begin with [`PREFIX`], in order, without those that Kubernetes makes for a service of this name.
    pub fn own_names(&self) -> impl Iterator<Item = &str> {
        let own = self.0.iter().filter(|(name, value)| name.starts_with(PREFIX) && !is_of_service(name, value));
        own.map(|(name, _)| name.as_str())
    }
}

impl<N: Into<String>, V: Into<OsString>> FromIterator<(N, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

/// Whether a variable is the address of a service, as Kubernetes and Docker's links set it: `FOREBAY_SERVICE_HOST`,
/// `FOREBAY_PORT=tcp://10.0.0.7:8080`, `FOREBAY_PORT_8080_TCP_ADDR`.
fn is_of_service(name: &str, value: &OsStr) -> bool {
    let of_port =
        name.split("_PORT_").nth(1).is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()));
    let is_address = name.ends_with("_PORT") && value.to_str().is_some_and(|value| value.contains("://"));
    name.ends_with("_SERVICE_HOST") || name.contains("_SERVICE_PORT") || of_port || is_address
}

/// The text without the line breaks at its end, as the shell's `$(…)` removes them: editors and `echo` add them.
fn without_line_breaks(text: &str) -> &str {
    text.trim_end_matches(['\n', '\r'])
}

/// A text that begins and ends with something visible. Otherwise invisible white space would become part of a name or a
/// secret.
fn unpadded(text: &str) -> Result<&str, InvalidVariable> {
    let is_invisible = |character: char| character.is_whitespace() || character.is_control();
    if text.starts_with(is_invisible) || text.ends_with(is_invisible) { Err(InvalidVariable::Padded) } else { Ok(text) }
}

/// The content of a file, without the line breaks at its end.
fn content(path: &str) -> Result<String, InvalidVariable> {
    let unreadable = |error: std::io::Error| InvalidVariable::Unreadable(error.to_string());
    let mut bytes = Vec::new();
    files::open(path.as_ref())
        .and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes))
        .map_err(unreadable)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(InvalidVariable::Unreadable(format!("it has more than {} KiB", FILE_BYTES_MAX >> 10)));
    }
    let text = String::from_utf8(bytes).map_err(|_| InvalidVariable::NotText)?;
    let text = without_line_breaks(&text);
    if text.is_empty() {
        Err(InvalidVariable::Unreadable("it is empty".to_owned()))
    } else {
        unpadded(text).map(str::to_owned)
    }
}

/// The variable of a setting: `FOREBAY_` and its path in upper case, joined by `_`. All but letters and digits becomes `_` too.
pub fn variable_name<'a>(path: impl IntoIterator<Item = &'a str>) -> String {
    let parts: Vec<&str> = path.into_iter().collect();
    let upper = |byte: char| if byte.is_ascii_alphanumeric() { byte.to_ascii_uppercase() } else { '_' };
    PREFIX.chars().chain(parts.join("_").chars().map(upper)).collect()
}

/// Why a `${…}` can't be replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreplaced {
    /// There is no `}`.
    Open,
    /// The text between the braces is no variable's name.
    Name,
    /// The variable isn't set, or is empty.
    Unset,
    /// The variable has no usable value.
    Unusable(InvalidVariable),
}

/// Replaces each `${NAME}` in `text`. `$${` becomes a plain `${`; any other `$` stays.
///
/// # Errors
/// Every reference that can't be replaced, with its bytes in `text`.
pub fn expand(text: &str, environment: &Environment) -> Result<String, Vec<(Range<usize>, Unreplaced)>> {
    let mut expanded = String::with_capacity(text.len());
    let mut wrong = Vec::new();
    let mut at = 0;
    while let Some(found) = text[at..].find("${") {
        let start = at + found;
        if text[at..start].ends_with('$') {
            expanded.push_str(&text[at..start - 1]);
            expanded.push_str("${");
            at = start + 2;
            continue;
        }
        expanded.push_str(&text[at..start]);
        let Some(length) = text[start..].find('}') else {
            wrong.push((start..text.len(), Unreplaced::Open));
            return Err(wrong);
        };
        at = start + length + 1;
        match value(&text[start + 2..at - 1], environment) {
            Ok(value) => expanded.push_str(&value),
            Err(why) => wrong.push((start..at, why)),
        }
    }
    expanded.push_str(&text[at..]);
    if wrong.is_empty() { Ok(expanded) } else { Err(wrong) }
}

fn value<'e>(name: &str, environment: &'e Environment) -> Result<Cow<'e, str>, Unreplaced> {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if name.is_empty() || name.as_bytes()[0].is_ascii_digit() || !name.bytes().all(word) {
        return Err(Unreplaced::Name);
    }
    match environment.get(name) {
        Some(value) => value.map(|value| value.text).map_err(Unreplaced::Unusable),
        None => Err(Unreplaced::Unset),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment() -> Environment {
        [("A", "one"), ("B_2", "${A}"), ("EMPTY", "")].into_iter().collect()
    }

    #[test]
    fn address_of_a_service_is_no_setting() {
        let named = [
            ("FOREBAY_SERVICE_HOST", "10.0.0.7"),
            ("FOREBAY_SERVICE_PORT_HTTP", "8080"),
            ("FOREBAY_PORT", "tcp://10.0.0.7:8080"),
            ("FOREBAY_PORT_8080_TCP_ADDR", "10.0.0.7"),
            ("FOREBAY_ADMIN_PORT_9000_TCP", "tcp://10.0.0.7:9000"),
            ("OTHER", "1"),
        ];
        let environment: Environment = named.into_iter().chain([("FOREBAY_LISTEN", "1")]).collect();
        assert_eq!(environment.own_names().collect::<Vec<_>>(), ["FOREBAY_LISTEN"]);
        let environment: Environment = [("FOREBAY_PORT", "8080")].into_iter().collect();
        assert_eq!(environment.own_names().collect::<Vec<_>>(), ["FOREBAY_PORT"]);
    }

    #[test]
    fn a_value_may_be_in_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let (long, longest) = ("x".repeat(64 * 1024 + 1), "x".repeat(64 * 1024));
        let files = [
            ("A", write("a", b"one\n")),
            ("B", write("b", b"t w o\r\n")),
            ("C", write("c", b"three\n\n")),
            ("D", write("d", b"\xff")),
            ("E", write("e", long.as_bytes())),
            ("F", write("f", longest.as_bytes())),
            ("G", write("g", b"\n")),
            ("H", folder.path().join("none").to_str().unwrap().to_owned()),
            ("I", write("i", b"secret \n")),
            ("J", format!("{}\n", write("j", b"six"))),
            ("TWICE", write("h", b"1")),
        ];
        let named = files.iter().map(|(name, path)| (format!("{name}{FILE}"), path.clone()));
        let environment: Environment = named.chain([("TWICE".to_owned(), "2".to_owned())]).collect();
        let get = |name: &str| environment.get(name).unwrap().map(|value| value.text.into_owned());
        assert_eq!([get("A"), get("B"), get("C")], ["one", "t w o", "three"].map(|text| Ok(text.to_owned())));
        assert_eq!([get("D"), get("TWICE")], [Err(InvalidVariable::NotText), Err(InvalidVariable::SetTwice)]);
        assert_eq!([get("I"), get("J")], [Err(InvalidVariable::Padded), Ok("six".to_owned())]);
        assert_eq!(get("F"), Ok(longest));
        for name in ["E", "G", "H"] {
            assert!(matches!(get(name), Err(InvalidVariable::Unreadable(_))), "{name}");
        }
        let path = &files[0].1;
        assert_eq!(environment.get("A").unwrap().unwrap().file, Some(path.as_str()));
        assert_eq!(get("A_FILE"), Ok(path.clone()), "a variable that names a file is a variable too");
        assert_eq!(expand("a://${B}@h", &environment).as_deref(), Ok("a://t w o@h"));
    }

    #[test]
    fn invisible_end_of_a_value_is_no_value() {
        let get = |value: &str| {
            let environment: Environment = [("A", value)].into_iter().collect();
            environment.get("A").map(|value| value.map(|value| value.text.into_owned()))
        };
        for value in ["events", "events\n", "events\r\n", "events\n\n"] {
            assert_eq!(get(value), Some(Ok("events".to_owned())), "{value:?}");
        }
        for value in ["", "\n", "\r\n\n"] {
            assert_eq!(get(value), None, "{value:?}: it is empty");
        }
        for value in ["events ", "events\t\n", " events", "\nevents", "events\u{a0}", "events\0", "events \n", " "] {
            assert_eq!(get(value), Some(Err(InvalidVariable::Padded)), "{value:?}");
        }
        assert_eq!(
            get("-----BEGIN-----\nab\n-----END-----\n"),
            Some(Ok("-----BEGIN-----\nab\n-----END-----".to_owned()))
        );
        let environment: Environment = [("A", "events\n"), ("B", "b ")].into_iter().collect();
        assert_eq!(expand("x-${A}-y", &environment).as_deref(), Ok("x-events-y"));
        assert_eq!(expand("${B}", &environment), Err(vec![(0..4, Unreplaced::Unusable(InvalidVariable::Padded))]));
    }

    #[test]
    fn references_are_replaced_once() {
        for (text, expanded) in [
            ("", ""),
            ("plain $ and $5 and }", "plain $ and $5 and }"),
            ("${A}", "one"),
            ("x${A}${A}y", "xoneoney"),
            ("é${B_2}é", "é${A}é"),
            ("$${A} ${A}", "${A} one"),
            ("$$${A}", "$${A}"),
        ] {
            assert_eq!(expand(text, &environment()).as_deref(), Ok(expanded), "{text}");
        }
    }

    #[test]
    fn every_bad_reference_is_found() {
        assert_eq!(
            expand("${C} ${} ${A} ${1} ${EMPTY} ${A", &environment()),
            Err(vec![
                (0..4, Unreplaced::Unset),
                (5..8, Unreplaced::Name),
                (14..18, Unreplaced::Name),
                (19..27, Unreplaced::Unset),
                (28..31, Unreplaced::Open),
            ])
        );
    }

    #[test]
    fn a_variable_is_named_by_its_path() {
        assert_eq!(variable_name(["gateway", "type_pointer"]), "FOREBAY_GATEWAY_TYPE_POINTER");
        assert_eq!(variable_name(["types", "access.hits-2", "routes"]), "FOREBAY_TYPES_ACCESS_HITS_2_ROUTES");
        assert_eq!(variable_name(["types", "*", "id"]), "FOREBAY_TYPES___ID");
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "[${}A-Z_é]{0,12}") {
            let _ = expand(&text, &environment());
        }
    }
}
