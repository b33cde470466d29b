//! Numbers and strings in the text of an expression.

/// A number that was read.
pub(super) enum NumberToken {
    Int(i128),
    Double(f64),
}

pub(super) fn begins_number(text: &str) -> bool {
    let mut bytes = text.bytes();
    match bytes.next() {
        Some(b'.') => bytes.next().is_some_and(|byte| byte.is_ascii_digit()),
        first => first.is_some_and(|byte| byte.is_ascii_digit()),
    }
}

/// How many bytes belong to a number, or to an invalid one.
pub(super) fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let is_part = match byte {
            b'.' => bytes.get(at + 1).is_some_and(u8::is_ascii_digit),
            b'+' | b'-' => matches!(bytes[at - 1], b'e' | b'E') && !text.starts_with("0x"),
            byte => byte.is_ascii_alphanumeric() || *byte == b'_',
        };
        if !is_part {
            break;
        }
        at += 1;
    }
    at
}

/// `12`, `0x1f`, `12u`, `1.5`, `.5`, `1e9`.
pub(super) fn number(text: &str) -> Result<NumberToken, &'static str> {
    const NO_NUMBER: &str = "this is not a number";
    const TOO_LONG: &str = "this integer has more than 127 bits; a decimal number with `.0` at its end is a double";
    let is_hex = text.starts_with("0x") || text.starts_with("0X");
    let digits = text.strip_suffix(['u', 'U']).unwrap_or(text);
    let (digits, radix) = if is_hex { (&digits[2..], 16) } else { (digits, 10) };
    if !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix)) {
        return i128::from_str_radix(digits, radix).map(NumberToken::Int).map_err(|_| TOO_LONG);
    }
    let is_decimal = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
    match text.parse::<f64>() {
        Ok(number) if is_decimal && number.is_finite() => Ok(NumberToken::Double(number)),
        Ok(_) if is_decimal => Err("this number is too large for a double"),
        _ => Err(NO_NUMBER),
    }
}

/// The beginning of a string.
pub(super) struct StringStart {
    is_raw: bool,
    prefix: usize,
    quote: &'static str,
}

/// A string's prefix and quotes, if the text begins with these.
pub(super) fn begin_string(text: &str) -> Option<StringStart> {
    let is_raw = text.starts_with(['r', 'R']);
    let prefix = usize::from(is_raw);
    let quotes = ["'''", "\"\"\"", "'", "\""];
    let quote = quotes.into_iter().find(|quote| text[prefix..].starts_with(quote))?;
    Some(StringStart { is_raw, prefix, quote })
}

impl StringStart {
    /// The content of the string, and its length in the text; or the place and the reason of a fault.
    pub(super) fn read(&self, text: &str) -> Result<(String, usize), (usize, String)> {
        let mut said = String::new();
        let mut at = self.prefix + self.quote.len();
        loop {
            let rest = &text[at..];
            if rest.starts_with(self.quote) {
                return Ok((said, at + self.quote.len()));
            }
            let unclosed = || (0, format!("this string isn't closed with {}", self.quote));
            let first = rest.chars().next().ok_or_else(unclosed)?;
            if first == '\n' && self.quote.len() == 1 {
                return Err(unclosed());
            }
            if first == '\\' && !self.is_raw {
                let (character, length) = escape(rest).ok_or_else(|| (at, NO_ESCAPE.to_owned()))?;
                said.push(character);
                at += length;
            } else {
                said.push(first);
                at += first.len_utf8();
            }
        }
    }
}

const NO_ESCAPE: &str = r"this is not an escape: write a backslash as \\, or put r before the quotes";

/// The character of an escape, and the escape's length.
fn escape(text: &str) -> Option<(char, usize)> {
    let simple = |character| Some((character, 2));
    let coded = |from: usize, length: usize, radix| {
        let digits = text.get(from..from + length)?;
        let is_valid = digits.chars().all(|digit| digit.is_digit(radix));
        let code = u32::from_str_radix(digits, radix).ok().filter(|_| is_valid)?;
        Some((char::from_u32(code)?, from + length))
    };
    match text.as_bytes().get(1)? {
        b'a' => simple('\x07'),
        b'b' => simple('\x08'),
        b'f' => simple('\x0c'),
        b'n' => simple('\n'),
        b'r' => simple('\r'),
        b't' => simple('\t'),
        b'v' => simple('\x0b'),
        quoted @ (b'\\' | b'?' | b'"' | b'\'' | b'`') => simple(char::from(*quoted)),
        b'x' | b'X' => coded(2, 2, 16),
        b'u' => coded(2, 4, 16),
        b'U' => coded(2, 8, 16),
        b'0'..=b'3' => coded(1, 3, 8),
        _ => None,
    }
}
