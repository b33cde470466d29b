//! `allowed_hosts`: names of this server, as clients write them in `Host`.

use settings::{InvalidValue, Section, SettingsReader};

/// Every name.
const ANY: &str = "*";
/// As many bytes as a name of DNS has.
const BYTES_MAX: usize = 253;

/// The names of a list.
pub(crate) fn read(reader: &mut SettingsReader<'_>, section: &Section<'_>, key: &str) -> Vec<String> {
    let help = "for example events.example.com, without scheme and port; IP addresses and localhost need not be listed, \"*\" allows \
                every name";
    let names =
        reader.parsed_texts(section, key, |text| if text == ANY { Ok(text.to_owned()) } else { name(text, help) });
    names.into_iter().map(|found| found.value).collect()
}

/// The names of `allowed_hosts`, each exact.
pub(crate) fn read_exact(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> Vec<String> {
    let help =
        "for example console.example.com, without scheme and port; IP addresses and localhost need not be listed";
    let names = reader.parsed_texts(section, "allowed_hosts", |text| name(text, help));
    names.into_iter().map(|found| found.value).collect()
}

fn name(text: &str, help: &str) -> Result<String, InvalidValue> {
    let wrong = || InvalidValue::new("is not the name of a host", "expected the name of a host").help(help);
    is_name(text).then(|| text.to_owned()).ok_or_else(wrong)
}

fn is_name(text: &str) -> bool {
    let is_part =
        |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    text.len() <= BYTES_MAX && text.strip_suffix('.').unwrap_or(text).split('.').all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_no_scheme_and_no_port() {
        for text in ["events.example.com", "gateway", "a.example.", "A-b_c.example"] {
            assert!(is_name(text), "{text}");
        }
        for text in ["", ".", "a..b", "http://a", "a:80", "a/b", "*.example", "a b", "\u{e9}.example", "[::1]"] {
            assert!(!is_name(text), "{text}");
        }
    }
}
