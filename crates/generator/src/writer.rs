//! Writes the pieces of a record. `write!` would do, at twice the time and with errors that can't happen.

/// Appends to a line.
pub(super) struct Writer<'a>(pub(super) &'a mut Vec<u8>);

const SECONDS_A_DAY: u64 = 86_400;
const DAYS_OF_MONTHS: [u64; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

impl Writer<'_> {
    /// Unescaped text: the caller escapes it if necessary.
    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        self.0.extend_from_slice(text.as_bytes());
        self
    }

    pub(super) fn number(&mut self, number: u64) -> &mut Self {
        self.padded(number, 1)
    }

    /// At least `width` digits, at most 20.
    fn padded(&mut self, mut number: u64, width: usize) -> &mut Self {
        let mut digits = [b'0'; 20];
        let mut at = digits.len();
        while number > 0 {
            at -= 1;
            digits[at] += (number % 10).to_le_bytes()[0];
            number /= 10;
        }
        self.0.extend_from_slice(&digits[at.min(digits.len() - width)..]);
        self
    }

    /// The last 48 bits as 12 hexadecimal digits.
    pub(super) fn hex48(&mut self, number: u64) -> &mut Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        for byte in &number.to_be_bytes()[2..] {
            self.0.extend_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
        self
    }

    /// `"name":number` with a comma before it.
    pub(super) fn member(&mut self, name: &str, number: u64) -> &mut Self {
        self.text(",\"").text(name).text("\":").number(number)
    }

    /// A time of the year 2026, `second` seconds after its start; after its end it begins again.
    pub(super) fn time(&mut self, second: u64) -> &mut Self {
        let (mut day, second) = (second / SECONDS_A_DAY % 365, second % SECONDS_A_DAY);
        let mut month = 0;
        while day >= DAYS_OF_MONTHS[month] {
            day -= DAYS_OF_MONTHS[month];
            month += 1;
        }
        self.text("2026-").padded(month as u64 + 1, 2).text("-").padded(day + 1, 2).text("T");
        self.padded(second / 3600, 2).text(":").padded(second / 60 % 60, 2).text(":").padded(second % 60, 2);
        self.text("+00:00")
    }
}
