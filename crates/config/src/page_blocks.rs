//! Configurations on pages: each block of TOML is one that `forebay check` accepts. The last comment of this kind before a block says what completes it:
//!
//! * `<!-- check: fragment -->`: types, sinks and upstreams that it names or lacks;
//! * `<!-- check: settings of KIND -->`: the head of their table, see [`heads`];
//! * `<!-- check: scenario -->`: a scenario of `forebay bench`, which is checked where it is read;
//! * `<!-- check: skip: REASON -->`: it is no configuration of Forebay.
//!
//! Pages below [`FRAGMENTS`] show one table at a time, and need no comment for that.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use access::Scope;
use settings::Environment;
use testkit::pages::of_users;

use crate::{Flags, Inputs, configuration, writer};

const FRAGMENTS: &str = "docs/reference/configuration";
const MARK: &str = "<!-- check: ";
/// More blocks than these aren't checked.
const SKIPPED_MAX: usize = 5;
/// Environment variables that pages name, with a value of the right form.
const VARIABLES: &[(&str, &str)] = &[
    ("ETCD_PASSWORD", "secret"),
    ("GITHUB_SECRET", "secret"),
    ("GITHUB_SECRET_NEW", "secret"),
    ("META_APP_SECRET", "secret"),
    ("META_VERIFY_TOKEN", "secret"),
    ("ORDERS_SECRET", "secret"),
    ("TWILIO_AUTH_TOKEN", "secret"),
    ("HASH_KEY", "secret"),
    ("HOSTNAME", "writer-1"),
    ("NATS_PASSWORD", "secret"),
    ("NATS_URL", "nats://forebay:secret@nats"),
    ("PG_ACME", "postgres://forebay@acme/events"),
    ("PG_COMMON", "postgres://forebay@common/events"),
    ("PG_LARGE", "postgres://forebay@large/events"),
    ("PG_URL", "postgres://forebay@db/events"),
    ("REDIS_URL", "redis://cache"),
    ("S3_ACCESS_KEY", "id"),
    ("S3_SECRET_KEY", "secret"),
    ("SEARCH_URL", "http://search:9200"),
    ("SHOP_SECRET", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
    ("SWIFT_KEY", "secret"),
    ("WRITER_TOKEN", "fb_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
];
/// A schema, and a template of Elasticsearch.
const JSON: &str = r#"{"index_patterns": ["access-*"]}"#;
const CSV: &str = "code,name\nNL,Netherlands\n";
const TOKENS: &str = r#"{"version": 1, "tokens": [{"name": "a", "sha256":
"6c38b9621b59fa24c2f523060691eeb154282b414839a9d1e0f1867a6f8bd6a4", "scopes": ["ingest", "read", "admin", "deliver"],
"source": "a", "created": "2026-11-25T11:20:55Z"}], "scopes_made": ["ingest", "read", "admin", "deliver"]}"#;

/// A block of TOML.
struct Block {
    page: String,
    line: usize,
    /// The text of the comment before it.
    mark: Option<String>,
    text: String,
}

/// The settings of a table without its head.
fn heads(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "an aggregate" => "[types.access]\nroutes = [\"local\"]\n[types.access.aggregate.hits]\nroutes = [\"local\"]\n",
        "a postgres sink" => "[sinks.warehouse]\nkind = \"postgres\"\nurl = \"${PG_URL}\"\n",
        "a swift sink" => {
            "[sinks.archive]\nkind = \"swift\"\nauth = \"http://swift/auth/v1.0\"\nuser = \"a:b\"\nkey = \"c\"\ncontainer = \"d\"\n"
        }
        _ => return None,
    })
}

#[test]
fn blocks_of_pages_are_accepted() {
    let blocks: Vec<Block> = of_users().iter().flat_map(|(page, text)| blocks(page, text)).collect();
    assert!(blocks.len() > 50, "the pages are missing");
    let skipped = blocks.iter().filter(|block| block.mark.as_deref().is_some_and(|mark| mark.starts_with("skip: ")));
    assert!(skipped.count() <= SKIPPED_MAX, "check more blocks, or change SKIPPED_MAX");
    let faults: Vec<String> =
        blocks.iter().filter_map(|block| Some(format!("{}:{}: {}", block.page, block.line, fault(block)?))).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn wrong_block_of_a_page_is_found() {
    let fault = |page: &str| {
        let [block] = &blocks("docs/a.md", page)[..] else { panic!("{page}") };
        fault(block).map(|fault| fault.lines().next().unwrap_or_default().to_owned())
    };
    let sink = "```toml\n[sinks.local]\nkind = \"sqlite\"\n```\n";
    assert_eq!(fault(sink).unwrap(), "error: missing setting `types`: no event would be accepted");
    assert_eq!(fault(&format!("<!-- check: fragment -->\n{sink}")), None);
    let wrong = sink.replace("\"\n```", "\"\npth = \"a\"\n```");
    assert_eq!(
        fault(&format!("<!-- check: fragment -->\nText:\n\n{wrong}")).unwrap(),
        "error: unknown setting `sinks.local.pth`"
    );
    assert_eq!(fault(&format!("<!-- check: skip: an example -->\n{sink}")), None);
    assert_eq!(fault(&format!("<!-- check: fragmnt -->\n{sink}")).unwrap(), "unknown comment `fragmnt`");
    let columns = "<!-- check: settings of a postgres sink -->\n```toml\ncolumns = { at = \"time\" }\n```\n";
    assert_eq!(fault(columns).unwrap(), "error: invalid value for `sinks.warehouse.columns.at`");
    assert_eq!(fault(&columns.replace("\"time", "\"/time")), None);
    let routes = "```toml\n[types.a]\nroutes = [\"gone\"]\n[sinks.local]\nkind = \"sqlite\"\n```\n";
    assert_eq!(fault(routes).unwrap(), "error: invalid value for `types.a.routes`: there is no such sink");
    let writer = "```toml\n[writer]\nlisten = \"127.0.0.1\"\n```\n";
    assert_eq!(fault(writer).unwrap(), "error: invalid value for `writer.listen`");
    let variable =
        "```toml\n[types.\"*\"]\nroutes = [\"a\"]\n[sinks.a]\nkind = \"nats\"\nurl = \"${NEW}\"\nstream = \"A\"\n```\n";
    assert_eq!(fault(variable).unwrap(), "error: invalid value for `sinks.a.url`");
}

/// The blocks of a page.
fn blocks(page: &str, text: &str) -> Vec<Block> {
    let (mut found, mut mark, mut block): (Vec<Block>, Option<String>, Option<Block>) = (Vec::new(), None, None);
    for (line, text) in (1..).zip(text.lines()) {
        let content = text.trim();
        match &mut block {
            Some(_) if content == "```" => found.extend(block.take()),
            Some(block) => block.text.extend([text, "\n"]),
            None if content == "```toml" => {
                block = Some(Block { page: page.to_owned(), line: line + 1, mark: mark.take(), text: String::new() });
            }
            None if content.starts_with(MARK) => {
                mark = content[MARK.len()..].strip_suffix(" -->").map(str::to_owned);
            }
            None => {}
        }
    }
    found
}

/// Why `forebay check` doesn't accept a block.
fn fault(block: &Block) -> Option<String> {
    let text = &block.text;
    let text = match block.mark.as_deref() {
        None if block.page.starts_with(FRAGMENTS) => completed(text),
        None => text.clone(),
        Some("fragment") => completed(text),
        // Crate `load` reads the scenarios of pages.
        Some("scenario") => return None,
        Some(mark) if mark.starts_with("skip: ") => return None,
        Some(mark) => match mark.strip_prefix("settings of ").and_then(heads) {
            Some(head) => completed(&format!("{head}{text}")),
            None => return Some(format!("unknown comment `{mark}`")),
        },
    };
    let folder = tempfile::tempdir().unwrap();
    write_files(&text, folder.path());
    let environment = VARIABLES.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    errors(&text, folder.path(), &environment)
}

/// The report of the role whose tables the text has.
fn errors(text: &str, folder: &Path, environment: &Environment) -> Option<String> {
    let flags = Flags::default();
    let inputs = Inputs {
        folder,
        file: Some(("forebay.toml", text.as_bytes())),
        environment,
        flags: &flags,
        data: &folder.join("data"),
        scopes: Scope::ALL.into_iter().collect(),
    };
    let is_writer = is_of_writer(text);
    let report = if is_writer { writer::read(&inputs).err() } else { configuration::read(&inputs).err() };
    report.map(|report| report.to_string())
}

/// Whether the text is a writer's configuration, by its tables or its name.
fn is_of_writer(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("[writer") || line == "# writer.toml")
}

/// Creates the files that the text names.
fn write_files(text: &str, folder: &Path) {
    let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    for name in text.split('"').skip(1).step_by(2).filter(|name| !name.contains(['$', '{', ':'])) {
        let content = match Path::new(name).extension().and_then(|extension| extension.to_str()) {
            Some("json") if name.contains("tokens") => TOKENS.to_owned(),
            Some("json") => JSON.to_owned(),
            Some("tokens") => TOKENS.to_owned(),
            Some("token") => "fb_a\n".to_owned(),
            Some("csv") => CSV.to_owned(),
            Some("pem") => pair.cert.pem(),
            Some("key") => pair.signing_key.serialize_pem(),
            _ => continue,
        };
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

/// The text with types, sinks and upstreams that it lacks.
fn completed(text: &str) -> String {
    let heads = |table: &str| -> BTreeSet<&str> {
        let names = text.lines().filter_map(|line| line.strip_prefix('[')?.strip_prefix(table)?.strip_prefix('.'));
        names.map(|rest| rest.split([']', '.']).next().unwrap()).collect()
    };
    let values = |key: &str| -> BTreeSet<&str> {
        let lines = text.lines().filter_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix('='));
        lines.flat_map(|value| value.split('#').next().unwrap().split('"').skip(1).step_by(2)).collect()
    };
    let (types, sinks) = (heads("types"), heads("sinks"));
    let mut result = text.to_owned();
    let mut used: BTreeSet<&str> = values("routes").into_iter().filter(|name| !name.contains(' ')).collect();
    let is_alone = |name: &&&str| !text.contains(&format!("[types.{name}]\n"));
    for name in types.iter().filter(is_alone).copied().chain(values("refused_to")).collect::<BTreeSet<_>>() {
        result += &format!("[types.{name}]\nroutes = [\"local\"]\n");
        used.insert("local");
    }
    if types.is_empty() && !sinks.is_empty() && !is_of_writer(text) {
        result += &format!("[types.\"*\"]\nroutes = {:?}\n", Vec::from_iter(&sinks));
    }
    for name in used.difference(&sinks) {
        result += &format!("[sinks.{name}]\nkind = \"null\"\n");
    }
    for name in values("upstream").difference(&heads("upstreams")) {
        result += &format!("[upstreams.{name}]\nservers = [\"http://127.0.0.1:8081\"]\n");
    }
    result
}
