//! Names of types from the names that protocols use.

use limits::TYPE_NAME_BYTES_MAX;

/// The name of a type from a protocol's own name: in lower case, with `_` for each character that type names don't have. A part that begins
/// with another character than a letter or a digit begins with `0`: parts are what dots separate.
///
/// # Errors
/// The name is empty, or longer than 64 bytes. Cutting it could merge two types.
pub fn type_name(name: &str) -> Result<String, String> {
    let mut made = String::with_capacity(name.len());
    let mut part_begins = true;
    for character in name.chars() {
        let character = match character.to_ascii_lowercase() {
            allowed @ ('a'..='z' | '0'..='9' | '-' | '.' | '_') => allowed,
            _ => '_',
        };
        if part_begins && !character.is_ascii_alphanumeric() {
            made.push('0');
        }
        part_begins = character == '.';
        made.push(character);
    }
    if part_begins {
        made.push('0');
    }
    match (name.len(), made.len()) {
        (0, _) => Err("the name of the event's type is empty: send one".to_owned()),
        (_, ..=TYPE_NAME_BYTES_MAX) => Ok(made),
        (_, length) => Err(format!(
            "the type name of the event has {length} bytes; at most {TYPE_NAME_BYTES_MAX} are allowed: send a shorter name"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use event::TypeName;

    #[test]
    fn names_become_type_names() {
        for (name, expected) in [
            ("filebeat-8.19.0", "filebeat-8.19.0"),
            ("Order Completed", "order_completed"),
            ("com.example/Created", "com.example_created"),
            (".ds-logs", "0.ds-logs"),
            ("a..b.", "a.0.b.0"),
            ("-x", "0-x"),
            ("é", "0_"),
        ] {
            assert_eq!(type_name(name).as_deref(), Ok(expected), "{name}");
            assert!(TypeName::new(expected).is_ok(), "{expected}");
        }
        assert!(type_name("").is_err());
        assert!(type_name(&"a".repeat(TYPE_NAME_BYTES_MAX + 1)).is_err());
    }
}
