//! Completions for shells and manual pages, generated from the command line's definition.

use std::io::Write;
use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::errors::cannot;
use crate::flags::Cli;
use crate::output::print;

/// Prints the completion script for `shell`.
///
/// # Errors
/// The standard output can't be written to.
pub(crate) fn print_completions(shell: Shell) -> anyhow::Result<u8> {
    print(|output| output.write_all(&completions(shell)))?;
    Ok(0)
}

/// Writes `forebay.1`, and `forebay-COMMAND.1` for each command, into `directory`.
///
/// # Errors
/// The directory can't be created or written to.
pub(crate) fn write_manual(directory: &Path) -> anyhow::Result<u8> {
    let written = std::fs::create_dir_all(directory).and_then(|()| clap_mangen::generate_to(Cli::command(), directory));
    written.map(|()| 0).map_err(cannot(format!("write the man pages to {}", directory.display())))
}

/// The generator panics if a write fails, so it writes to memory.
fn completions(shell: Shell) -> Vec<u8> {
    let mut command = Cli::command();
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completions_have_commands_and_flags() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = String::from_utf8(completions(shell)).unwrap();
            for word in ["gateway", "journal", "verify", "accept-loss", "log-level", "status", "reload"] {
                assert!(script.contains(word), "{shell}: {word}");
            }
        }
    }

    #[test]
    fn each_command_has_a_manual_page() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("man1");
        assert_eq!(write_manual(&directory).unwrap(), 0);
        for page in [
            "forebay.1",
            "forebay-serve.1",
            "forebay-status.1",
            "forebay-reload.1",
            "forebay-journal-verify.1",
            "forebay-completions.1",
        ] {
            let text = std::fs::read_to_string(directory.join(page)).unwrap();
            assert!(text.contains("Example: forebay"), "{page}: {text}");
        }
        assert!(!directory.join("forebay-man.1").exists(), "it is for packages");
    }

    #[test]
    fn folder_that_cannot_be_written_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = write_manual(file.path()).unwrap_err().to_string();
        assert!(error.contains(&file.path().display().to_string()), "{error}");
    }
}
