//! Properties of all steps: nothing panics, the result is JSON, and values that no step names are unchanged.

mod hiding;
mod hostile;
mod mistakes;
mod properties;
mod trees;

use std::time::Duration;

use super::*;

fn specs(steps: &str) -> Vec<StepSpec> {
    serde_json::from_str(steps).unwrap()
}

fn compiled(steps: &str) -> Transform {
    Transform::compile(&specs(steps), &Tables::default()).unwrap()
}

/// The outcome of an event: the events, and how many each step dropped.
fn run(steps: &str, event: &str) -> Result<String, String> {
    let transform = compiled(steps);
    let (mut windows, mut scratch) = (transform.windows(1), Scratch::default());
    match transform.run(event, &Context::UNKNOWN, &mut windows, &mut scratch) {
        Ok(TransformOutcome::Unchanged) => Ok(format!("= {event}")),
        Ok(TransformOutcome::Changed(changed)) => Ok(changed.to_owned()),
        Ok(TransformOutcome::Filtered(by)) => Ok(format!("filtered by {} ({})", by.step, by.operation)),
        Ok(TransformOutcome::Several(several)) => {
            let events: Vec<_> = several.events.iter().map(|part| (part.number, &part.payload)).collect();
            Ok(format!("{events:?}"))
        }
        Err(error) => Err(error.to_string()),
    }
}
