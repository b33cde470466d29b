//! Texts with places for a user's number and for random numbers: `/events?key={user}`, `/objects/images/{1..100}`.

use std::io::Write;

use random::Random;

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
}

impl Template {
    /// Reads a text. Braces around anything else are a part of it, as in JSON.
    pub(super) fn new(text: &str) -> Self {
        let (mut pieces, mut plain, mut rest) = (Vec::new(), String::new(), text);
        while let Some(start) = rest.find('{') {
            let place =
                rest[start..].find('}').and_then(|end| Some((place(&rest[start + 1..start + end])?, start + end)));
            let end = place.as_ref().map_or(start, |(_, end)| *end);
            if let Some((piece, _)) = place {
                plain.push_str(&rest[..start]);
                pieces.extend([Piece::Text(std::mem::take(&mut plain)), piece]);
            } else {
                plain.push_str(&rest[..=start]);
            }
            rest = &rest[end + 1..];
        }
        plain.push_str(rest);
        pieces.push(Piece::Text(plain));
        Self(pieces)
    }

    /// The texts between the places.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| if let Piece::Text(text) = piece { Some(text.as_str()) } else { None })
    }

    /// Appends the text of a user.
    pub(super) fn write(&self, out: &mut Vec<u8>, user: usize, random: &mut Random) {
        for piece in &self.0 {
            let number = match piece {
                Piece::Text(text) => {
                    out.extend_from_slice(text.as_bytes());
                    continue;
                }
                Piece::User => user as u64,
                Piece::Number(first, last) => first + random.below((last - first).saturating_add(1)),
            };
            let _ = write!(out, "{number}");
        }
    }
}

/// The meaning of the text between two braces.
fn place(text: &str) -> Option<Piece> {
    if text == "user" {
        return Some(Piece::User);
    }
    let (first, last) = text.split_once("..")?;
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last).then_some(Piece::Number(first, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str, user: usize) -> String {
        let mut out = Vec::new();
        Template::new(text).write(&mut out, user, &mut Random::new(1));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn places_are_filled_and_other_braces_kept() {
        assert_eq!(written("/events?key=u-{user}&limit=20", 17), "/events?key=u-17&limit=20");
        assert_eq!(written("{user}{7..7}", 3), "37");
        let body = r#"{"user":{"id":{user}},"n":{5..5},"é":"{x}{2..1}{","#;
        assert_eq!(written(body, 2), r#"{"user":{"id":2},"n":5,"é":"{x}{2..1}{","#);
        let texts = Template::new("/a{x}/{user}/b").texts().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(texts, ["/a{x}/", "/b"]);
    }

    #[test]
    fn random_numbers_are_uniform() {
        let (template, mut random, mut counts) = (Template::new("{3..12}"), Random::new(5), [0_u32; 13]);
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
}
