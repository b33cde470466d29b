//! The numbers by which the log knows the records that a client sent. They only grow: a line with one value has its line number plus the
//! number of further values in the lines before it.

use json::batch::Item;

/// The further values of lines, after the first one: their numbers, and which value of the line each is.
#[derive(Default)]
pub(super) struct SourceNumbers {
    further: Vec<(u32, u32)>,
}

impl SourceNumbers {
    /// The number of a record that is accepted. Records come in the order of the body.
    pub(super) fn add(&mut self, item: &Item<'_>) -> u32 {
        let number = |further: usize| item.line.saturating_add(u32::try_from(further).unwrap_or(u32::MAX));
        if item.value > 1 {
            self.further.push((number(self.further.len() + 1), item.value));
        }
        number(self.further.len())
    }

    /// The line of a number, and which value of it.
    pub(super) fn place(&self, number: u32) -> (u32, u32) {
        let before = self.further.partition_point(|(further, _)| *further <= number);
        let value = before.checked_sub(1).map(|last| self.further[last]).filter(|(further, _)| *further == number);
        (number - u32::try_from(before).unwrap_or(number), value.map_or(1, |(_, value)| value))
    }

    /// About how many bytes they take in memory.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(self.further.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_numbers_grow_and_map_to_lines() {
        let mut numbers = SourceNumbers::default();
        // The second value of line 1, the first of line 7 and the fourth of line 8 aren't accepted.
        let places = [(1, 1), (1, 3), (1, 4), (3, 1), (4, 1), (7, 2), (7, 3), (8, 1), (8, 2), (8, 3), (8, 5), (9, 1)];
        let given: Vec<u32> = places
            .iter()
            .map(|(line, value)| {
                let (line, value) = (*line, *value);
                let item = Item { line, value, ordinal: 0, type_name: None, id: None, record: Ok("1"), raw: b"1" };
                numbers.add(&item)
            })
            .collect();
        assert!(given.windows(2).all(|pair| pair[0] < pair[1]), "{given:?}");
        let found: Vec<_> = given.iter().map(|number| numbers.place(*number)).collect();
        assert_eq!(found, places);
        assert_eq!(SourceNumbers::default().place(17), (17, 1));
    }
}
