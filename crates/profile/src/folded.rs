//! A profile as text: a line for each stack, as scripts that draw flame graphs read it.

use std::fmt::Write;

use crate::stacks::Profile;

/// Lines in the order of their names.
pub(crate) fn write(profile: &Profile) -> String {
    let line = |stack: &crate::stacks::Stack| {
        // A semicolon separates frames, and `[u8; 4]` has one.
        let names: Vec<String> =
            stack.frames.iter().map(|frame| profile.name(*frame).replace("; ", ",").replace(';', ",")).collect();
        let mut line = names.join(";");
        // A string has room for a number.
        let _ = write!(line, " {}", stack.weight);
        line
    };
    let mut lines: Vec<String> = profile.stacks.iter().map(line).collect();
    lines.sort_unstable();
    lines.iter().fold(String::new(), |text, line| text + line + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stacks::SampleKind;
    use crate::stacks::tests::example;

    #[test]
    fn line_has_a_stack_and_its_weight() {
        let wanted = "shard-0;core::main 1\nshard-0;core::main;Vec<[u8,4]>::push & \"x\" 6\nshard-0;sqlite3Step 3\n";
        assert_eq!(write(&example(SampleKind::Cpu)), wanted);
    }
}
