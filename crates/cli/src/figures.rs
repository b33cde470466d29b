//! Figures for users: a time and a size, each in its largest unit.

/// A time in seconds.
pub(super) fn age(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// A number of bytes.
pub(super) fn size(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    let unit = (1..units.len()).rev().find(|unit| bytes >> (10 * (unit + 1)) > 0).unwrap_or(0);
    format!("{} {}", bytes.div_ceil(1 << (10 * (unit + 1))), units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figure_has_one_unit() {
        let ages = [0, 59, 60, 3_599, 3_600, 86_399, 86_400, 8_640_000].map(age);
        assert_eq!(ages, ["0s", "59s", "1m", "59m", "1h", "23h", "1d", "100d"]);
        let sizes = [0, 1, 1 << 20, 1 << 30, (1 << 30) + 1, 5 << 40, 5 << 50].map(size);
        assert_eq!(sizes, ["0 KiB", "1 KiB", "1 MiB", "1 GiB", "2 GiB", "5 TiB", "5120 TiB"]);
    }
}
