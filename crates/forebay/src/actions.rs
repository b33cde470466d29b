//! The last actions of operators: the caller, the target, and the result. A restart forgets them; the log keeps them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use admin_api::actions::{ActionJson, ActionsJson};
use text::rfc3339;

use crate::caller::Caller;

/// Actions that are kept at most.
const KEPT_MAX: usize = 256;
/// Bytes of a target or a result at most. The rest is cut off.
const TEXT_BYTES_MAX: usize = 512;

/// The last actions of this process, at most 256. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Actions(Arc<Mutex<VecDeque<ActionJson>>>);

impl Actions {
    /// Keeps an action that has just ended. The oldest one makes room.
    pub(crate) fn record(&self, by: &Caller, action: &'static str, target: String, result: String) {
        let at = rfc3339::format(clock::unix_microseconds());
        let kept = ActionJson { at, by: by.to_string(), action, target: shortened(target), result: shortened(result) };
        let mut actions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if actions.len() == KEPT_MAX {
            actions.pop_back();
        }
        actions.push_front(kept);
    }

    /// All that are kept, the newest first.
    pub(crate) fn now(&self) -> ActionsJson {
        let actions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ActionsJson { actions: actions.iter().cloned().collect() }
    }
}

fn shortened(mut text: String) -> String {
    if text.len() > TEXT_BYTES_MAX {
        text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_keep_the_newest_in_order() {
        let actions = Actions::default();
        for number in 0..KEPT_MAX + 2 {
            actions.record(&Caller::Loopback, "reload", number.to_string(), "é".repeat(TEXT_BYTES_MAX));
        }
        let kept = actions.now().actions;
        let targets = [0, KEPT_MAX - 1].map(|at| kept[at].target.clone());
        assert_eq!((kept.len(), targets), (KEPT_MAX, ["257".to_owned(), "2".to_owned()]));
        assert_eq!(kept[0].result, "é".repeat(TEXT_BYTES_MAX / 2) + "…");
        assert_eq!((kept[0].by.as_str(), kept[0].action), ("loopback without token", "reload"));
    }
}
