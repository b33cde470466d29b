//! Passwords and keys aren't shown with the mistakes beside them.

use std::borrow::Cow;
use std::ops::Range;

/// A step of `hash` and its key stand at most so many lines apart.
const NEAR_LINES: usize = 3;

/// A text as it may be shown: each password in a URL (RFC 3986 §3.2.1), and each token in one of NATS, behind `password=`, each `api_key`, each key of a step of `hash` or of a
/// store of objects, each secret and header of a web hook, and what stands behind the host in each `url` of HTTP is as many stars as it has
/// bytes, so that every spot stays where it is.
pub(super) fn hidden(text: &str) -> Cow<'_, str> {
    let mut shown = Cow::Borrowed(text);
    for secret in parameters(text)
        .chain(keys(text))
        .chain(hook_secrets(text))
        .chain(listed(text, "secrets"))
        .chain(header_values(text))
        .chain(behind_hosts(text))
    {
        let stars = "*".repeat(secret.len());
        shown.to_mut().replace_range(secret, &stars);
    }
    for (scheme, _) in text.match_indices("://") {
        let start = scheme + "://".len();
        let rest = &text[start..];
        let end = rest.find(|c: char| c.is_whitespace() || "\"'".contains(c)).unwrap_or(rest.len());
        let Some(at) = rest[..end].rfind('@') else { continue };
        let before = match rest[..at].find(':') {
            Some(colon) => colon + 1,
            None if is_of_nats(&text[..scheme]) => 0,
            None => continue,
        };
        let password = start + before..start + at;
        let stars = "*".repeat(password.len());
        shown.to_mut().replace_range(password, &stars);
    }
    shown
}

/// Whether a scheme is one in whose URLs a token stands where others have a user.
fn is_of_nats(before: &str) -> bool {
    ["nats", "tls"].iter().any(|scheme| before.ends_with(scheme))
}

/// What stands behind `password=`, as in the parameters of a URL.
fn parameters(text: &str) -> impl Iterator<Item = Range<usize>> {
    text.match_indices("password=").map(|(at, name)| {
        let start = at + name.len();
        let rest = &text[start..];
        start..start + rest.find(|c: char| c.is_whitespace() || "&\"'".contains(c)).unwrap_or(rest.len())
    })
}

/// The strings behind `api_key =` and `secret_key =`, and behind `key =` near a `hash` or in the table of a sink for Swift.
fn keys(text: &str) -> impl Iterator<Item = Range<usize>> {
    text.match_indices("key").filter_map(move |(at, name)| {
        let value = text[at + name.len()..].trim_start_matches(['"', '\'', ' ', '\t']).strip_prefix('=')?.trim_start();
        let quote = value.chars().next().filter(|quote| ['"', '\''].contains(quote))?;
        let start = text.len() - value.len() + 1;
        let length = text[start..].find([quote, '\n'])?;
        // What stands for a variable is no secret.
        if text[start..].starts_with("${") {
            return None;
        }
        if text[..at].ends_with("api_") || text[..at].ends_with("secret_") || is_of_swift(text, at) {
            return Some(start..start + length);
        }
        let lines_before = text[..at].rsplit('\n').take(NEAR_LINES + 1);
        let lines_behind = text[at..].split('\n').take(NEAR_LINES + 1);
        lines_before.chain(lines_behind).any(|line| line.contains("hash")).then_some(start..start + length)
    })
}

/// What stands behind the mark of a web hook's secret.
fn hook_secrets(text: &str) -> impl Iterator<Item = Range<usize>> {
    const MARK: &str = "whsec_";
    text.match_indices(MARK).map(|(at, _)| {
        let start = at + MARK.len();
        let rest = &text[start..];
        start..start + rest.find(|c: char| c.is_whitespace() || ",\"'".contains(c)).unwrap_or(rest.len())
    })
}

/// What stands behind the hosts of all that `url =` or a variable whose name ends so says, unless it is the URL of a database: receivers
/// of web hooks, and others, have their tokens in the path or the query. What begins otherwise than a URL, since that is the mistake,
/// is hidden from its first slash on.
fn behind_hosts(text: &str) -> impl Iterator<Item = Range<usize>> {
    let names = text.char_indices().filter(move |(at, _)| is_url_name(text, *at));
    let values = names.filter_map(move |(at, _)| {
        let value = text[at + URL_NAME.len()..].trim_start_matches(['"', '\'', ' ', '\t']).strip_prefix('=')?;
        let start = text.len() - value.len();
        Some(start..start + length_of(value))
    });
    values.flat_map(move |value| {
        let mut start = value.start;
        let parts = text[value].split(|c: char| c.is_ascii_whitespace() || ",\"'".contains(c)).map(move |part| {
            let place = start..start + part.len();
            start = place.end + 1;
            place
        });
        parts.filter_map(move |part| {
            let behind = behind_host(&text[part.clone()])?;
            Some(part.start + behind..part.end)
        })
    })
}

/// How long a value is: to the end of its line, or of its list.
fn length_of(value: &str) -> usize {
    let is_list = value.trim_start().starts_with('[');
    let (mut quote, mut end) = (None, value.len());
    for (at, character) in value.char_indices() {
        match (quote, character) {
            (None, ']') if is_list => return at,
            (_, '\n') if !is_list => {
                end = at;
                break;
            }
            (None, '"' | '\'') => quote = Some(character),
            (Some(open), _) if open == character => quote = None,
            _ => {}
        }
    }
    end
}

/// The name of a key, and the end of a variable's.
const URL_NAME: &str = "url";

/// Whether the name of a key or of a variable ends here with [`URL_NAME`].
fn is_url_name(text: &str, at: usize) -> bool {
    let is_name = text.get(at..at + URL_NAME.len()).is_some_and(|name| name.eq_ignore_ascii_case(URL_NAME));
    is_name && !text[..at].ends_with(|before: char| before.is_ascii_alphanumeric())
}

/// Where in a URL of HTTP, or in what isn't one, that begins which follows the host.
fn behind_host(url: &str) -> Option<usize> {
    let host = match url.split_once("://") {
        Some((scheme, _)) if !["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) => return None,
        Some((scheme, _)) => scheme.len() + "://".len(),
        None => 0,
    };
    let behind = url[host..].find(['/', '?', '#'])? + host + 1;
    (behind < url.len()).then_some(behind)
}

/// What stands behind the names in a list `headers`.
fn header_values(text: &str) -> impl Iterator<Item = Range<usize>> {
    listed(text, "headers").filter_map(|header| {
        let colon = text[header.clone()].find(':')?;
        Some(header.start + colon + 1..header.end)
    })
}

/// The strings in lists of this name.
fn listed<'t>(text: &'t str, name: &'t str) -> impl Iterator<Item = Range<usize>> {
    let lists = text.match_indices(name).filter_map(move |(at, _)| {
        let value = text[at + name.len()..].trim_start().strip_prefix('=')?.trim_start().strip_prefix('[')?;
        let start = text.len() - value.len();
        Some(start..start + value.find(']').unwrap_or(value.len()))
    });
    lists.flat_map(|list| {
        let mut start = list.start;
        let parts = text[list].split(['"', '\'']).map(move |part| {
            let place = start..start + part.len();
            start = place.end + 1;
            place
        });
        // What lies between two quotes is every second part.
        parts.skip(1).step_by(2)
    })
}

/// Whether the table that a place is in says that it is of this kind.
fn is_of_swift(text: &str, at: usize) -> bool {
    let begin = text[..at].rfind("\n[").unwrap_or(0);
    let end = text[at..].find("\n[").map_or(text.len(), |end| at + end);
    ["\"swift\"", "'swift'"].iter().any(|kind| text[begin..end].contains(kind))
}

#[cfg(test)]
mod tests {
    use super::hidden;

    #[test]
    fn only_passwords_are_hidden_and_nothing_moves() {
        for (text, shown) in [
            ("url = \"postgres://ann:s3cr\u{e9}t@db:5432/x\"\n", "url = \"postgres://ann:*******@db:5432/x\"\n"),
            ("a://u:p@h b://u:a@b@h", "a://u:*@h b://u:***@h"),
            ("a://u:p/@h/x", "a://u:**@h/x"),
            ("http://h:80/x @ y", "http://h:80/x @ y"),
            ("a://u@h:1", "a://u@h:1"),
            ("nats://t0ken@h:1,i", "nats://*****@h:1,i"),
            ("url = \"tls://ann:s3cret@h\"", "url = \"tls://ann:******@h\""),
            ("://", "://"),
            ("p://u@h/d?password=s3cret&x=1", "p://u@h/d?password=******&x=1"),
            ("{ hash = '/c', key = \"TOP'S\", digits = 99 }", "{ hash = '/c', key = \"*****\", digits = 99 }"),
            ("key = 'ab'\ndigits = 1\nhash = \"/c\"", "key = '**'\ndigits = 1\nhash = \"/c\""),
            ("kind = \"redis\"\nkey = \"{type}\"", "kind = \"redis\"\nkey = \"{type}\""),
            ("{ hash = '/c', key = '${KEY}' }", "{ hash = '/c', key = '${KEY}' }"),
            ("api_key = \"TOPS\"\nindex = 'a'", "api_key = \"****\"\nindex = 'a'"),
            ("api_key = \"${KEY}\"", "api_key = \"${KEY}\""),
            ("hash = 1\nkey = \"", "hash = 1\nkey = \""),
            ("secret = \"whsec_TOPS\"", "secret = \"whsec_****\""),
            ("secrets = [\"TOPS\", 'whsec_ab']", "secrets = [\"****\", '********']"),
            ("headers = [\"X-Key: TOPS\", 'b:c']\nurl = \"a:b\"", "headers = [\"X-Key:*****\", 'b:*']\nurl = \"a:b\""),
            ("headers = [\"a:", "headers = [\"a:"),
            ("url = \"https://h.example:1/T/OPS?x\" # a/b", "url = \"https://h.example:1/*******\" # a/*"),
            ("url = 'https:/h/TOPS'\nx = 'a/b'", "url = 'https:/******'\nx = 'a/b'"),
            ("\"url\" = \"HTTP://h?TOPS\"", "\"url\" = \"HTTP://h?****\""),
            ("FOREBAY_SINKS_HOOK_URL=https://h/TOPS", "FOREBAY_SINKS_HOOK_URL=https://h/****"),
            ("url = [\"http://a/b\",\n 'http://c/d']", "url = [\"http://a/*\",\n 'http://c/*']"),
            ("url = \"redis://h/0\"\nurl = \"http://h/\"", "url = \"redis://h/0\"\nurl = \"http://h/\""),
            ("url = ['http://[::1]/a']\n[x/y]", "url = ['http://[::1]/*']\n[x/y]"),
            ("curl = \"http://a/b\"", "curl = \"http://a/b\""),
            ("secret_key = \"ab\"\naccess_key = \"id\"", "secret_key = \"**\"\naccess_key = \"id\""),
            (
                "[a]\nkey = \"x\"\n[b]\nkey = \"ab\"\nkind = \"swift\"\n[c]\nkey = \"x\"",
                "[a]\nkey = \"x\"\n[b]\nkey = \"**\"\nkind = \"swift\"\n[c]\nkey = \"x\"",
            ),
        ] {
            assert_eq!(hidden(text), shown);
        }
    }
}
