//! `[upstreams.X]`: the writers that a gateway's sinks of kind `writer` use.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ::sink::http_client::{Endpoint, InvalidEndpoint};
use ::sink::remote::DeliverToken;

use super::file;
use super::reader::{Reader, Wrong};
use super::report::{Mistake, Spot};
use super::section::{Found, Section};

const KEYS: &[&str] = &["servers", "token", "ca"];
/// The variable and the flag that name the writers of a gateway without a file.
pub(super) const VARIABLE: &str = "FOREBAY_WRITERS";
/// The upstream that these make.
pub(super) const IMPLIED: &str = "writers";

/// The writers of an upstream.
#[derive(Clone, Debug)]
pub(super) struct Upstream {
    pub(super) servers: Vec<Endpoint>,
    pub(super) token: Option<DeliverToken>,
    pub(super) ca: Option<PathBuf>,
    spot: Spot,
}

/// All upstreams, by name; `None` stands for one with mistakes.
#[derive(Debug, Default)]
pub(super) struct Upstreams(BTreeMap<String, Option<Upstream>>);

/// Reads the tables, and what `--writer` and `FOREBAY_WRITERS` say; relative paths lead from `folder`.
pub(super) fn read(reader: &mut Reader<'_>, parent: &Section<'_>, flags: &[String], folder: &Path) -> Upstreams {
    let mut upstreams = Upstreams::default();
    for section in reader.tables(parent) {
        let upstream = read_one(reader, &section, folder);
        upstreams.0.insert(section.name().to_owned(), upstream);
    }
    let named = reader.texts_of_flag_or_variable("writer", flags, VARIABLE);
    let Some(named) = named else { return upstreams };
    if let Some(Upstream { spot, .. }) = upstreams.0.values().flatten().next() {
        let mistake = Mistake::new("the writers are named twice", named.spot.clone(), "beside the file's upstreams");
        reader.push(mistake.also(spot.clone(), "this upstream"));
    }
    let servers = servers(reader, "the address of a writer", named.value);
    let upstream = servers.map(|servers| Upstream { servers, token: None, ca: None, spot: named.spot });
    upstreams.0.insert(IMPLIED.to_owned(), upstream);
    upstreams
}

fn read_one(reader: &mut Reader<'_>, section: &Section<'_>, folder: &Path) -> Option<Upstream> {
    reader.check_keys(section, KEYS);
    let token = reader.text(section, "token", token).map(|found| found.value);
    let ca = file::read(reader, section, "ca", folder, file::PEM).map(|found| found.value);
    let mistakes_before = reader.mistakes();
    let Some(found) = reader.texts(section, "servers") else {
        if reader.mistakes() == mistakes_before {
            reader.missing(section, "servers", "name the writers, as in servers = [\"http://127.0.0.1:8081\"]");
        }
        return None;
    };
    if found.value.is_empty() {
        let title = format!("`{}` names no writer", section.key_path("servers"));
        reader.push(Mistake::new(title, found.spot, "empty"));
        return None;
    }
    let spots: Vec<Spot> = found.value.iter().map(|server| server.spot.clone()).collect();
    let servers = servers(reader, &section.key_path("servers").to_string(), found.value)?;
    if token.is_some() {
        warn_of_clear_token(reader, section, servers.iter().zip(spots));
    }
    Some(Upstream { servers, token, ca, spot: section.spot().clone() })
}

fn servers(reader: &mut Reader<'_>, name: &str, texts: Vec<Found<String>>) -> Option<Vec<Endpoint>> {
    let mut servers = Vec::new();
    for Found { value, spot } in &texts {
        let parsed = value
            .parse::<Endpoint>()
            .and_then(|endpoint| if endpoint.user.is_some() { Err(InvalidEndpoint::Form) } else { Ok(endpoint) });
        match parsed {
            Ok(endpoint) if servers.contains(&endpoint) => {
                reader.push(Mistake::new(format!("`{name}` names a writer twice"), spot.clone(), "named before"));
            }
            Ok(endpoint) => servers.push(endpoint),
            Err(error) => {
                let title = format!("`{name}` has what is no address of a writer");
                reader.push(Mistake::new(title, spot.clone(), error.to_string()));
            }
        }
    }
    (servers.len() == texts.len()).then_some(servers)
}

/// A token that others on the way can read opens the writer to them.
fn warn_of_clear_token<'s>(
    reader: &mut Reader<'_>,
    section: &Section<'_>,
    mut servers: impl Iterator<Item = (&'s Endpoint, Spot)>,
) {
    let Some((_, spot)) = servers.find(|(server, _)| server.is_in_clear()) else { return };
    let title = format!("the token of `upstreams.{}` is sent without TLS", section.name());
    let help = "use https:// and [writer.tls], unless all that is between the two is trusted";
    reader.push(Mistake::warning(title, spot, "others on the way can read it").help(help.to_owned()));
}

fn token(text: &str) -> Result<DeliverToken, Wrong> {
    let wanted = "wanted what `forebay token new NAME --scope deliver` prints";
    DeliverToken::new(text).ok_or_else(|| Wrong::new("is no token", wanted))
}

impl Upstreams {
    /// Whether there is any.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The upstream of a name: none where it has mistakes of its own.
    ///
    /// # Errors
    /// There is no table of this name.
    pub(super) fn find(&self, name: &str) -> Result<Option<&Upstream>, Wrong> {
        let known: Vec<&str> = self.0.keys().map(String::as_str).collect();
        let unknown = || Wrong::new("names an upstream that doesn't exist", "no such upstream");
        let help = match known.as_slice() {
            [] => format!("add [upstreams.{name}] with servers = [\"http://127.0.0.1:8081\"]"),
            known => format!("known upstreams: {}", known.join(", ")),
        };
        self.0.get(name).map(Option::as_ref).ok_or_else(|| unknown().help(help))
    }
}
