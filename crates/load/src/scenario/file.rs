//! Reads a scenario's file.

use std::path::Path;
use std::time::Duration;

use anyhow::anyhow;
use settings::{
    Diagnostic, Diagnostics, Environment, InvalidValue, Section, Setting, SettingsReader, SourceSpan, Unset, duration,
    files, names,
};
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::assertion::{Assertion, PERCENTILES};
use super::template::{LineRules, Template};

const DAY: Duration = Duration::from_hours(24);
const COUNT: Setting = Setting::integer("count", (1, 100_000), "");
const RAMP: Setting = Setting::duration("ramp", (Duration::ZERO, DAY), "").or(Unset::Duration(Duration::ZERO));
const THINK: Setting = Setting::duration("think", (Duration::from_millis(1), DAY), "");
const USERS: &[Setting] = &[COUNT, RAMP, THINK];
const WEIGHT: Setting = Setting::integer("weight", (1, 1_000_000), "");
const STEP: [&str; 9] = ["name", "get", "post", "weight", "ack", "body", "key", "expect", "assert"];
const ASSERT: [&str; 6] = ["errors", "p50", "p90", "p99", "p99.9", "max"];
/// A report has a histogram for each.
const STEPS_MAX: usize = 100;
/// The body of a step without one.
const BODY: &str = r#"{"user":{user},"number":{1..1000000}}"#;

/// Users and their steps.
#[derive(Debug)]
pub struct Scenario {
    pub(super) users: usize,
    /// The time in which all users begin.
    pub(super) ramp: Duration,
    /// The mean time between two steps of a user.
    pub(super) think: Duration,
    pub(super) steps: Vec<Step>,
    /// What all steps together must keep.
    pub(super) assertions: Vec<Assertion>,
}

/// A request of a user.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) name: String,
    pub(super) path: Template,
    /// The body of a POST; none for GET.
    pub(super) body: Option<Template>,
    pub(super) ack: Option<String>,
    /// The idempotency key of a POST; without it each request has another one.
    pub(super) key: Option<Template>,
    /// None for a step of the login.
    pub(super) weight: Option<u64>,
    /// The expected statuses; if it is empty, 200 to 299.
    pub(super) expect: Vec<u16>,
    pub(super) assertions: Vec<Assertion>,
}

impl Scenario {
    /// Reads a file.
    ///
    /// # Errors
    /// It can't be read, or has mistakes: the message shows each with its line.
    pub fn load(path: &Path) -> anyhow::Result<Self> {
        let bytes = std::fs::read(path).map_err(|error| anyhow!("can't read {}: {error}", path.display()))?;
        Ok(Self::parse(path, &String::from_utf8_lossy(files::content(&bytes)))?)
    }

    /// Reads the text of the file at `path`.
    fn parse(path: &Path, text: &str) -> Result<Self, Diagnostics> {
        let mut report = Diagnostics::new(|text, _| text.into());
        let source = report.source(path.display().to_string(), text);
        let (document, errors) = DeTable::parse_recoverable(text);
        for error in &errors {
            let at = SourceSpan { source, range: error.span().unwrap_or(0..0) };
            report.push(Diagnostic::new("invalid scenario: not TOML", at, error.message()));
        }
        if !errors.is_empty() {
            return Err(report);
        }
        let environment = Environment::default();
        let mut reader = SettingsReader::new(&environment, report);
        let folder = path.parent().unwrap_or(Path::new(""));
        let scenario = read(&mut reader, &Section::root(source, document.get_ref()), folder);
        let report = reader.finish();
        scenario.filter(|_| report.errors() == 0).ok_or(report)
    }
}

fn read(reader: &mut SettingsReader<'_>, root: &Section<'_>, folder: &Path) -> Option<Scenario> {
    reader.check_keys(root, ["users", "step", "assert"]);
    let users = reader.table(root, "users");
    reader.check_keys(&users, names(USERS));
    let count = reader.number::<i64>(&users, &COUNT);
    let think = reader.duration(&users, &THINK);
    let is_missing = |key| users.get(key).is_none();
    for (key, help) in
        [("count", "as in count = 3000"), ("think", "the mean time between two steps of a user: think = \"10s\"")]
    {
        if is_missing(key) {
            reader.missing(&users, key, help);
        }
    }
    let ramp = reader.duration_or_default(&users, &RAMP);
    let mut assertions = assertions(reader, root);
    // A load that isn't answered measures nothing.
    if !assertions.iter().any(|one| matches!(one, Assertion::Errors(_))) {
        assertions.push(Assertion::Errors(0));
    }
    let steps = steps(reader, root, folder);
    Some(Scenario { users: usize::try_from(count?.value).ok()?, ramp, think: think?.value, steps, assertions })
}

fn steps(reader: &mut SettingsReader<'_>, root: &Section<'_>, folder: &Path) -> Vec<Step> {
    let Some((key, value)) = root.entry("step") else {
        reader.missing(root, "step", "add a [[step]] with get = \"/PATH\" or post = \"/PATH\"");
        return Vec::new();
    };
    let span = root.span_of(key);
    let Some(list) = value.get_ref().as_array() else {
        reader.push(Diagnostic::new("invalid value for `step`", span, "one table").help("write [[step]]".to_owned()));
        return Vec::new();
    };
    if list.len() > STEPS_MAX {
        reader.push(
            Diagnostic::new("invalid value for `step`", span, format!("{} steps", list.len()))
                .help(format!("write at most {STEPS_MAX} steps")),
        );
    }
    let mut steps = Vec::new();
    for element in list.iter() {
        match element.get_ref().as_table() {
            Some(table) => {
                let section = Section::child(root, &Spanned::new(element.span(), DeString::from("step")), table);
                steps.extend(step(reader, &section, folder));
            }
            None => drop(reader.wrong_kind::<()>(&"step", root.span_of(element), element.get_ref(), "a table")),
        }
    }
    steps
}

fn step(reader: &mut SettingsReader<'_>, section: &Section<'_>, folder: &Path) -> Option<Step> {
    reader.check_keys(section, STEP);
    let [name, ack] = ["name", "ack"].map(|key| {
        let text = reader.text(section, key, |text| check_line(text, is_of_header).map(|()| text.to_owned()));
        text.map(|found| found.value)
    });
    let [get, post] = ["get", "post"].map(|key| reader.text(section, key, |text| path(text, folder)));
    let [body, key] = [("body", is_any as fn(u8) -> bool), ("key", is_of_header)].map(|(key, is_allowed)| {
        let found = reader.text(section, key, |text| {
            check_line(text, is_allowed)?;
            Template::new(text, LineRules { folder, is_allowed })
        });
        found.map(|found| found.value)
    });
    let weight = reader.number::<i64>(section, &WEIGHT);
    let assertions = assertions(reader, section);
    let expect = expected(reader, section);
    let is_post = section.get("post").is_some();
    if is_post == section.get("get").is_some() {
        reader.push(Diagnostic::new("invalid step", section.span().clone(), "needs either `get` or `post`"));
    }
    if let Some(key) = ["ack", "body", "key"].into_iter().find(|key| !is_post && section.get(key).is_some()) {
        reader.push(Diagnostic::new(
            format!("conflict: `{key}` with `get`"),
            section.span().clone(),
            format!("remove `{key}`, or write `post`"),
        ));
    }
    let (text, path) = get.or(post)?.value;
    let usual = || Template::new(BODY, LineRules { folder, is_allowed: is_any }).ok();
    Some(Step {
        name: name.unwrap_or(text),
        path,
        body: if is_post { body.or_else(usual) } else { None },
        ack,
        key,
        weight: weight.map(|found| found.value.unsigned_abs()),
        expect,
        assertions,
    })
}

const fn is_any(_: u8) -> bool {
    true
}

/// A byte of a header, or of the report.
const fn is_of_header(byte: u8) -> bool {
    byte.is_ascii_graphic() || byte == b' '
}

const fn is_of_path(byte: u8) -> bool {
    byte.is_ascii_graphic()
}

/// Checks a text that becomes a part of a request's head, or of the report.
fn check_line(text: &str, is_allowed: fn(u8) -> bool) -> Result<(), InvalidValue> {
    if text.bytes().all(is_allowed) {
        return Ok(());
    }
    let label = "has a space or a character other than ASCII";
    Err(InvalidValue::new("", label).help("write such characters percent-encoded, as %20"))
}

/// A path, and its text.
fn path(text: &str, folder: &Path) -> Result<(String, Template), InvalidValue> {
    let wrong = |label: &str, help: &str| Err(InvalidValue::new("", label).help(help));
    if !text.starts_with('/') {
        return wrong(
            "does not begin with /",
            "write a path with its query, such as /events?limit=20; --url has the rest",
        );
    }
    let template = Template::new(text, LineRules { folder, is_allowed: is_of_path })?;
    if template.texts().any(|text| text.contains(['{', '}'])) {
        return wrong(
            "has an unknown placeholder",
            "write {user}, {1..100} for a random number, or {line:FILE} for a random line",
        );
    }
    // A file's name may have any character.
    template.texts().try_for_each(|text| check_line(text, is_of_path))?;
    Ok((text.to_owned(), template))
}

fn expected(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> Vec<u16> {
    let Some((span, value)) = section.get("expect") else { return Vec::new() };
    let numbers: Option<Vec<u16>> = match value.as_array() {
        Some(list) => list.iter().map(|one| status(one.get_ref())).collect(),
        None => status(value).map(|status| vec![status]),
    };
    numbers.unwrap_or_else(|| {
        let help = "write a status from 200 to 599, or a list of them".to_owned();
        reader.push(Diagnostic::new("invalid value for `step.expect`", span, "not a status").help(help));
        Vec::new()
    })
}

fn status(value: &DeValue<'_>) -> Option<u16> {
    value.as_integer()?.as_str().parse().ok().filter(|status| (200..600).contains(status))
}

fn assertions(reader: &mut SettingsReader<'_>, parent: &Section<'_>) -> Vec<Assertion> {
    let section = reader.table(parent, "assert");
    reader.check_keys(&section, ASSERT);
    let errors = reader.integer(&section, "errors", |number| {
        u64::try_from(number).map_err(|_| InvalidValue::new("is out of range", "expected 0 or more"))
    });
    let mut found: Vec<Assertion> = errors.map(|errors| Assertion::Errors(errors.value)).into_iter().collect();
    for (index, (name, _)) in PERCENTILES.into_iter().enumerate() {
        let most = reader.text(&section, name, |text| duration::within(text, Duration::ZERO, DAY));
        found.extend(most.map(|most| Assertion::Latency(index, most.value)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::pages::of_users;

    const USERS: &str = "[users]\ncount = 2\nthink = \"1s\"\n";

    fn mistakes(steps: &str) -> String {
        Scenario::parse(Path::new("users.toml"), &format!("{USERS}{steps}"))
            .err()
            .map(|report| report.to_string())
            .unwrap_or_default()
    }

    #[test]
    fn file_is_read() {
        let text = format!(
            "{USERS}ramp = \"30s\"\n[assert]\nerrors = 3\n\"p99.9\" = \"300ms\"\n[[step]]\npost = \"/ingest/event/login\"\n\
             ack = \"stored\"\nkey = \"{{user}}\"\n[[step]]\nname = \"mine\"\nweight = 3\nget = \"/events?key={{user}}\"\n\
             expect = [200, 404]\nassert = {{ p50 = \"5ms\" }}\n"
        );
        let scenario = Scenario::parse(Path::new("users.toml"), &text).unwrap();
        assert_eq!(
            (scenario.users, scenario.ramp, scenario.think),
            (2, Duration::from_secs(30), Duration::from_secs(1))
        );
        assert_eq!(scenario.assertions, [Assertion::Errors(3), Assertion::Latency(3, Duration::from_millis(300))]);
        let [login, mine] = &scenario.steps[..] else { panic!("{scenario:?}") };
        assert_eq!(
            (login.name.as_str(), login.ack.as_deref(), login.weight),
            ("/ingest/event/login", Some("stored"), None)
        );
        assert_eq!(
            (login.body.clone(), login.key.clone()),
            (Some(Template::plain(BODY)), Some(Template::plain("{user}")))
        );
        assert_eq!(
            (mine.name.as_str(), mine.weight, &mine.body, &mine.expect),
            ("mine", Some(3), &None, &vec![200, 404])
        );
        assert_eq!(mine.assertions, [Assertion::Latency(0, Duration::from_millis(5))]);
        let without = Scenario::parse(Path::new("a"), &format!("{USERS}[[step]]\nget = \"/\"\n")).unwrap();
        assert_eq!((without.assertions, without.ramp), (vec![Assertion::Errors(0)], Duration::ZERO));
    }

    #[test]
    fn mistakes_are_shown_with_their_lines() {
        for (steps, line, expected) in [
            ("", 1, "missing setting `step`"),
            ("[step]\nget = \"/\"", 4, "write [[step]]"),
            ("[[step]]\nget = \"/\"\npost = \"/\"", 4, "needs either `get` or `post`"),
            ("[[step]]\nweight = 1", 4, "needs either `get` or `post`"),
            ("[[step]]\nget = \"/\"\nwait = 1", 6, "unknown setting `step.wait`"),
            ("[[step]]\nget = \"/\"\nbody = \"{}\"", 4, "conflict: `body` with `get`"),
            ("[[step]]\nget = \"events\"", 5, "does not begin with /"),
            ("[[step]]\nget = \"/{usr}\"", 5, "write {user}, {1..100}"),
            ("[[step]]\nget = \"/{line:none.txt}\"", 5, "can't read none.txt: No such file"),
            ("[[step]]\npost = \"/\"\nbody = \"{line:none.txt}\"", 6, "is relative to the folder of the scenario"),
            ("[[step]]\nget = \"/a b\"", 5, "percent-encoded"),
            ("[[step]]\npost = \"/\"\nkey = \"a\\r\\nb\"", 6, "percent-encoded"),
            ("[[step]]\nget = \"/\"\nweight = 0", 6, "expected 1 to 1000000"),
            ("[[step]]\nget = \"/\"\nexpect = 99", 6, "write a status from 200 to 599"),
            ("[[step]]\nget = \"/\"\n[assert]\np98 = \"1s\"", 7, "unknown setting `assert.p98`"),
            ("[[step]]\nget = \"/\"\nassert = { p99 = \"soon\" }", 6, "expected a number with a unit"),
            ("[[step]", 4, "not TOML"),
        ] {
            let shown = mistakes(steps);
            let place = format!("users.toml:{line}:");
            assert!(shown.contains(expected) && shown.contains(&place), "{steps}, {expected}, {place}\n{shown}");
        }
        let shown = Scenario::parse(Path::new("a"), "[[step]]\nget = \"/\"\n").unwrap_err().to_string();
        assert!(shown.contains("missing setting `users.count`") && shown.contains("2 mistakes"), "{shown}");
    }

    #[test]
    fn lines_of_files_have_the_characters_of_their_place() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("lines.txt"), "a\nb c\nd\u{e9}\n").unwrap();
        let parse = |step: &str| {
            let text = format!("{USERS}[[step]]\n{step}");
            Scenario::parse(&folder.path().join("users.toml"), &text).map_err(|report| report.to_string())
        };
        let scenario = parse("post = \"/\"\nbody = '\"{line:lines.txt}\"'").unwrap();
        let mut out = Vec::new();
        scenario.steps[0].body.as_ref().unwrap().write(&mut out, 1, &mut random::Random::new(1));
        assert!(["\"a\"", "\"b c\"", "\"d\u{e9}\""].map(str::as_bytes).contains(&&out[..]));
        for (step, expected) in [
            ("get = \"/{line:lines.txt}\"", "lines.txt:2 has a space or a character other than ASCII"),
            ("post = \"/\"\nkey = \"{line:lines.txt}\"", "lines.txt:3 has a space or a character other than ASCII"),
        ] {
            let shown = parse(step).unwrap_err();
            assert!(shown.contains(expected) && shown.contains("percent-encoded"), "{shown}");
        }
    }

    #[test]
    fn scenarios_of_pages_are_accepted() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("images.txt"), "_parts/a/1\n").unwrap();
        let pages = of_users();
        let blocks = pages.iter().flat_map(|(page, text)| {
            let parts = text.split("<!-- check: scenario -->").skip(1);
            parts.filter_map(move |part| Some((page, part.split_once("```toml\n")?.1.split_once("```")?.0)))
        });
        let faults: Vec<_> = blocks
            .clone()
            .filter_map(|(page, text)| Scenario::parse(&folder.path().join(page.replace('/', "-")), text).err())
            .collect();
        assert!(faults.is_empty() && blocks.count() > 0, "{faults:?}");
    }

    #[test]
    fn page_names_all_settings() {
        let page = include_str!("../../../../docs/guides/measure.md");
        let settings = names(super::USERS).chain(STEP).chain(ASSERT);
        let missing: Vec<_> = settings.filter(|name| !page.contains(&format!("`{name}`"))).collect();
        assert!(missing.is_empty(), "docs/guides/measure.md lacks {missing:?}");
    }
}
