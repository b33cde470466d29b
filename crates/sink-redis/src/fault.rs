//! What is at fault in a script's error: the record at which the script stopped, or the store.

use sink::Fault;

/// Parts of errors about the value of one record. Errors that aren't listed are the store's: the script has set the cursor before the record,
/// and the record is sent again.
const FAULTS: [(&str, Fault); 3] =
    [("overflow", Fault::Record), ("is not an integer", Fault::Record), ("string exceeds maximum", Fault::Record)];
/// First words of errors that are always the store's.
const OF_THE_STORE: [&str; 12] = [
    "OOM",
    "MISCONF",
    "READONLY",
    "NOREPLICAS",
    "LOADING",
    "BUSY",
    "CLUSTERDOWN",
    "MASTERDOWN",
    "NOPERM",
    "NOAUTH",
    "WRONGTYPE",
    "MOVED",
];

/// What is at fault.
pub(super) fn fault(said: &str) -> Fault {
    let word = said.trim_start_matches('-').split(' ').next().unwrap_or_default();
    if OF_THE_STORE.contains(&word) {
        return Fault::Store;
    }
    FAULTS.iter().find(|(words, _)| said.contains(words)).map_or(Fault::Store, |(_, fault)| *fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_has_its_fault() {
        for (words, expected) in FAULTS {
            assert_eq!(fault(&format!("ERR {words} of something")), expected, "{words}");
            for word in OF_THE_STORE {
                assert_eq!(fault(&format!("{word} {words}")), Fault::Store, "{word}");
            }
        }
        assert_eq!(fault("ERR something that isn't listed"), Fault::Store);
    }
}
