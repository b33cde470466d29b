//! The terminal while `forebay top` runs: a separate screen, and single keys without their echo. A terminal gets its state back however the
//! command ends, except by SIGKILL.

use std::io::{self, IsTerminal, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

use super::screen::screen;
use crate::errors::cannot;
use admin_api::overview::OverviewJson;

/// The alternate screen, without the cursor.
const BEGIN: &str = "\x1b[?1049h\x1b[?25l";
const END: &str = "\x1b[?25h\x1b[?1049l";
/// Ctrl-C and Ctrl-D, if the terminal passes them on as keys.
const CONTROL_C: u8 = 3;
const CONTROL_D: u8 = 4;

/// The terminal, until it is dropped.
pub(super) struct Terminal {
    /// The modes of the keyboard's terminal, if there is one.
    before: Option<Termios>,
}

impl Terminal {
    /// Takes the terminal. The key `q` sets `stop`.
    ///
    /// # Errors
    /// It can't be written, or its modes can't be set.
    pub(super) fn take(stop: &Arc<AtomicBool>) -> io::Result<Self> {
        let mut before = None;
        if io::stdin().is_terminal() {
            let modes = tcgetattr(io::stdin())?;
            let mut single_keys = modes.clone();
            single_keys.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
            tcsetattr(io::stdin(), OptionalActions::Now, &single_keys)?;
            before = Some(modes);
        }
        let terminal = Self { before };
        write(BEGIN)?;
        if terminal.before.is_some() {
            let stop = stop.clone();
            thread::Builder::new().name("keys".into()).spawn(move || follow_keys(&stop))?;
        }
        Ok(terminal)
    }

    /// Draws an overview, and why it is not live, if so.
    pub(super) fn draw(&self, overview: &OverviewJson, not_live: Option<&str>) -> anyhow::Result<()> {
        let size = tcgetwinsize(io::stdout()).ok();
        let size = size.map(|size| (usize::from(size.ws_col), usize::from(size.ws_row)));
        // A terminal without a known size says 0.
        let (columns, rows) = size.filter(|(columns, rows)| *columns > 0 && *rows > 0).unwrap_or((80, 24));
        let text = screen(overview, Some(columns), not_live);
        write(&fitted(&text, rows)).map_err(cannot("write to the terminal"))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = write(END);
        if let Some(before) = &self.before {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
    }
}

/// The text from the top of the screen on, without the lines that don't fit. The rest of the screen is cleared.
fn fitted(text: &str, rows: usize) -> String {
    let lines: Vec<&str> = text.lines().take(rows).collect();
    format!("\x1b[H{}\x1b[K\x1b[J", lines.join("\x1b[K\r\n"))
}

fn write(text: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(text.as_bytes())?;
    output.flush()
}

fn follow_keys(stop: &AtomicBool) {
    for key in io::stdin().lock().bytes() {
        if matches!(key, Ok(b'q' | b'Q' | CONTROL_C | CONTROL_D)) {
            stop.store(true, Ordering::Relaxed);
            return;
        }
        if key.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn screen_fits_the_rows() {
        assert_eq!(fitted("a\nb\nc\n", 2), "\x1b[Ha\x1b[K\r\nb\x1b[K\x1b[J");
        assert_eq!(fitted("a\n", 24), "\x1b[Ha\x1b[K\x1b[J");
    }
}
