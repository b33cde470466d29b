//! Texts with places for a user's number, random numbers and random lines of a file: `/events?key={user}`, `/orders/{1..100}`,
//! `/objects/images/{line:images.txt}`.

use std::io::Write;
use std::path::Path;

use random::Random;
use settings::InvalidValue;

use super::lines::Lines;

/// A text with places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Template(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// The user's number, from 1.
    User,
    /// A number from the first to the second.
    Number(u64, u64),
    Line(Lines),
}

/// Where files are, and the bytes that their lines may have.
#[derive(Clone, Copy)]
pub(super) struct LineRules<'a> {
    pub(super) folder: &'a Path,
    pub(super) is_allowed: fn(u8) -> bool,
}

impl Template {
    /// Reads a text. Braces around anything else are a part of it, as in JSON.
    ///
    /// # Errors
    /// A file of lines can't be used.
    pub(super) fn new(text: &str, rules: LineRules<'_>) -> Result<Self, InvalidValue> {
        let (mut pieces, mut plain, mut rest) = (Vec::new(), String::new(), text);
        while let Some(start) = rest.find('{') {
            let end = rest[start..].find('}').map(|end| start + end);
            let place = end.map(|end| place(&rest[start + 1..end], rules)).transpose()?.flatten();
            if let (Some(piece), Some(end)) = (place, end) {
                plain.push_str(&rest[..start]);
                pieces.extend([Piece::Text(std::mem::take(&mut plain)), piece]);
                rest = &rest[end + 1..];
            } else {
                plain.push_str(&rest[..=start]);
                rest = &rest[start + 1..];
            }
        }
        plain.push_str(rest);
        pieces.push(Piece::Text(plain));
        Ok(Self(pieces))
    }

    /// The texts between the places.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| if let Piece::Text(text) = piece { Some(text.as_str()) } else { None })
    }

    /// Appends the text of a user.
    pub(super) fn write(&self, out: &mut Vec<u8>, user: usize, random: &mut Random) {
        for piece in &self.0 {
            // A `Vec` takes every byte.
            let _ = match piece {
                Piece::Text(text) => out.write_all(text.as_bytes()),
                Piece::User => write!(out, "{user}"),
                Piece::Number(first, last) => {
                    write!(out, "{}", first + random.below((last - first).saturating_add(1)))
                }
                Piece::Line(lines) => out.write_all(lines.get(random.index(lines.count())).as_bytes()),
            };
        }
    }
}

/// The meaning of the text between two braces.
fn place(text: &str, rules: LineRules<'_>) -> Result<Option<Piece>, InvalidValue> {
    if text == "user" {
        return Ok(Some(Piece::User));
    }
    if let Some(file) = text.strip_prefix("line:") {
        return Lines::read(&rules.folder.join(file), rules.is_allowed).map(|lines| Some(Piece::Line(lines)));
    }
    Ok(range(text).map(|(first, last)| Piece::Number(first, last)))
}

fn range(text: &str) -> Option<(u64, u64)> {
    let (first, last) = text.split_once("..")?;
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last).then_some((first, last))
}

#[cfg(test)]
impl Template {
    /// A text without files.
    pub(super) fn plain(text: &str) -> Self {
        Self::new(text, LineRules { folder: Path::new("/"), is_allowed: |_| true }).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str, user: usize) -> String {
        let mut out = Vec::new();
        Template::plain(text).write(&mut out, user, &mut Random::new(1));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn places_are_filled_and_other_braces_kept() {
        assert_eq!(written("/events?key=u-{user}&limit=20", 17), "/events?key=u-17&limit=20");
        assert_eq!(written("{user}{7..7}", 3), "37");
        let body = r#"{"user":{"id":{user}},"n":{5..5},"é":"{x}{2..1}{","#;
        assert_eq!(written(body, 2), r#"{"user":{"id":2},"n":5,"é":"{x}{2..1}{","#);
        let texts = Template::plain("/a{x}/{user}/b").texts().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(texts, ["/a{x}/", "/b"]);
    }

    #[test]
    fn random_numbers_are_uniform() {
        let (template, mut random, mut counts) = (Template::plain("{3..12}"), Random::new(5), [0_u32; 13]);
        for _ in 0..10_000 {
            let mut out = Vec::new();
            template.write(&mut out, 1, &mut random);
            counts[std::str::from_utf8(&out).unwrap().parse::<usize>().unwrap()] += 1;
        }
        assert!(
            counts[..3].iter().all(|count| *count == 0) && counts[3..].iter().all(|count| (900..1_100).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn each_line_of_a_file_is_chosen_equally_often() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("images.txt"), "a/1.png\nb/2.png\n").unwrap();
        let rules = LineRules { folder: folder.path(), is_allowed: |byte| byte.is_ascii_graphic() };
        let template = Template::new("/objects/{line:images.txt}?u={user}", rules).unwrap();
        let (mut random, mut first) = (Random::new(5), 0);
        for _ in 0..10_000 {
            let mut out = Vec::new();
            template.write(&mut out, 7, &mut random);
            let is_first = out == b"/objects/a/1.png?u=7";
            assert!(is_first || out == b"/objects/b/2.png?u=7", "{}", String::from_utf8_lossy(&out));
            first += u32::from(is_first);
        }
        assert!((4_800..5_200).contains(&first), "{first}");
        assert!(Template::new("{line:others.txt}", rules).is_err());
    }
}
