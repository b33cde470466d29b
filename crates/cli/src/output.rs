//! The standard output of commands that print. If its reader has ended, as in a pipe to `head`, they end as other tools do: immediately and
//! without a message.

use std::io::{self, BufWriter, ErrorKind, StdoutLock, Write};
use std::process;

use crate::errors::cannot;

/// The exit code then: 128 and the number of SIGPIPE, as a shell shows a process killed by it. It must differ from that of a command that has
/// printed everything.
const EXIT_UNREAD: i32 = 141;

/// Writes to the standard output.
pub struct Output(StdoutLock<'static>);

impl Output {
    /// Locks it: nothing else is printed until the drop.
    pub fn lock() -> Self {
        Self(io::stdout().lock())
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        while_read(self.0.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        while_read(self.0.flush())
    }
}

/// Prints the output of `write`.
///
/// # Errors
/// The standard output can't be written.
pub fn print(write: impl FnOnce(&mut BufWriter<Output>) -> io::Result<()>) -> anyhow::Result<()> {
    let mut output = BufWriter::new(Output::lock());
    write(&mut output).and_then(|()| output.flush()).map_err(cannot("write to the standard output"))
}

/// Prints a text of several lines unchanged to the error output.
///
/// # Errors
/// It can't be written.
pub(crate) fn print_error(text: &str) -> anyhow::Result<()> {
    writeln!(io::stderr(), "{}", text.trim_end_matches('\n')).map_err(cannot("write to the error output"))
}

fn while_read<T>(written: io::Result<T>) -> io::Result<T> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => process::exit(EXIT_UNREAD),
        other => other,
    }
}
