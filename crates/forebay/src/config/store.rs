//! What sinks for stores of objects over HTTP have in common: a URL, a key, an authority and a time-out.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ::sink::http_client::{Endpoint, InvalidEndpoint};
use ::sink::object::over_http::{Container, InvalidContainer, Secret};
use event::limits;

use super::duration;
use super::reader::{Reader, Wrong};
use super::report::Mistake;
use super::section::Section;

/// A setting that must be there, with what to do where it isn't.
pub(super) fn required<T>(
    reader: &mut Reader<'_>,
    section: &Section<'_>,
    setting: &str,
    help: &str,
    parse: impl Fn(&str) -> Result<T, Wrong>,
) -> Option<T> {
    let mistakes_before = reader.mistakes();
    let found = reader.text(section, setting, parse);
    if found.is_none() && reader.mistakes() == mistakes_before {
        let title = format!("`{}` is missing", section.key_path(setting));
        let mistake = Mistake::new(title, section.spot().clone(), format!("has no `{setting}`"));
        reader.push(mistake.help(help.to_owned()));
    }
    found.map(|found| found.value)
}

/// A file with authorities; a relative path leads from `folder`.
pub(super) fn ca(reader: &mut Reader<'_>, section: &Section<'_>, folder: &Path) -> Option<PathBuf> {
    reader.text(section, "ca", file).map(|found| {
        let is_of_file = found.spot.source == section.spot().source;
        if is_of_file { folder.join(found.value) } else { found.value }
    })
}

pub(super) fn timeout(reader: &mut Reader<'_>, section: &Section<'_>) -> Duration {
    let within = |text: &str| duration::within(text, limits::STORE_TIMEOUT_MIN, limits::STORE_TIMEOUT_MAX);
    reader.text(section, "timeout", within).map_or(limits::STORE_TIMEOUT, |found| found.value)
}

/// Who asks has settings of its own.
pub(super) fn url(text: &str) -> Result<Endpoint, Wrong> {
    let wrong = |label: String| Wrong::new("is not the URL of a store", label);
    let url: Endpoint = text.parse().map_err(|error: InvalidEndpoint| wrong(error.to_string()))?;
    if url.user.is_some() {
        return Err(wrong("who asks has settings of its own".to_owned()));
    }
    Ok(url)
}

pub(super) fn container(text: &str) -> Result<Container, Wrong> {
    text.parse().map_err(|error: InvalidContainer| Wrong::new("can't be the name of a container", error.to_string()))
}

pub(super) fn secret(text: &str) -> Result<Secret, Wrong> {
    word(text).map(|text| Secret::from(text.as_str()))
}

pub(super) fn word(text: &str) -> Result<String, Wrong> {
    if text.is_empty() { Err(Wrong::new("is empty", "wanted a text")) } else { Ok(text.to_owned()) }
}

fn file(text: &str) -> Result<PathBuf, Wrong> {
    if text.is_empty() || text.contains('\0') {
        return Err(Wrong::new("is no path", "wanted the path of a PEM file"));
    }
    Ok(text.into())
}
