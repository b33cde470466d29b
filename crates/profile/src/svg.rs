//! A profile as a flame graph: one SVG file without scripts, which a browser shows. Hovering over a frame shows its name and share.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::machine::HERTZ;
use crate::stacks::{Profile, SampleKind};

const WIDTH: f64 = 1200.0;
const MARGIN: f64 = 10.0;
const ROW: f64 = 17.0;
const HEAD: f64 = 44.0;
/// A frame that is narrower, in pixels, isn't drawn.
const FRAME_WIDTH_MIN: f64 = 0.3;
/// The width of a character of the font, in pixels.
const LETTER_WIDTH: f64 = 6.6;

/// A frame and those that it called.
#[derive(Default)]
struct Node {
    weight: u64,
    callees: BTreeMap<u32, Node>,
}

impl Node {
    fn of(profile: &Profile) -> Self {
        let mut root = Self::default();
        for stack in &profile.stacks {
            root.weight += stack.weight;
            let mut node = &mut root;
            for frame in &stack.frames {
                node = node.callees.entry(*frame).or_default();
                node.weight += stack.weight;
            }
        }
        root
    }
}

struct Drawing<'a> {
    profile: &'a Profile,
    all: u64,
    /// Frames as SVG.
    frames: String,
    rows: usize,
}

/// The file. `title` is its heading.
pub(crate) fn write(profile: &Profile, title: &str) -> String {
    let root = Node::of(profile);
    let mut drawing = Drawing { profile, all: root.weight.max(1), frames: String::new(), rows: 0 };
    drawing.callees(&root, 0, MARGIN);
    let remarks = profile.remarks();
    let height = HEAD + ROW * (drawing.rows.max(1) + remarks.len()) as f64 + MARGIN;
    let mut svg = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" font-family=\"monospace\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fffdf7\"/>\n"
    );
    text(&mut svg, MARGIN, 18.0, title);
    text(&mut svg, MARGIN, 34.0, &summary(profile));
    for (row, remark) in remarks.iter().enumerate() {
        text(&mut svg, MARGIN, 34.0 + ROW * (row + 1) as f64, remark);
    }
    // Writing to a string doesn't fail.
    let _ = writeln!(svg, "<g transform=\"translate(0 {})\">", HEAD + ROW * remarks.len() as f64);
    svg + &drawing.frames + "</g>\n</svg>\n"
}

fn summary(profile: &Profile) -> String {
    let seconds = profile.duration.as_secs_f64();
    let samples = profile.samples();
    let weight: u64 = profile.stacks.iter().map(|stack| stack.weight).sum();
    match profile.kind {
        SampleKind::Cpu => {
            let cpu = weight as f64 / HERTZ as f64;
            format!(
                "CPU time of {seconds:.1} s: {cpu:.1} s in {samples} samples. Width is CPU time; callees are below callers."
            )
        }
        SampleKind::Heap => {
            let mib = weight as f64 / 1024.0 / 1024.0;
            format!(
                "Allocations of {seconds:.1} s: {mib:.1} MiB in {samples} samples. Width is bytes; callees are below callers."
            )
        }
    }
}

impl Drawing<'_> {
    fn width(&self, weight: u64) -> f64 {
        weight as f64 / self.all as f64 * (WIDTH - 2.0 * MARGIN)
    }

    fn callees(&mut self, node: &Node, row: usize, mut x: f64) {
        for (frame, callee) in &node.callees {
            let width = self.width(callee.weight);
            if width >= FRAME_WIDTH_MIN {
                self.frame(*frame, callee.weight, (row, x, width));
                self.callees(callee, row + 1, x);
            }
            x += width;
        }
    }

    fn frame(&mut self, frame: u32, weight: u64, (row, x, width): (usize, f64, f64)) {
        self.rows = self.rows.max(row + 1);
        let (name, y) = (self.profile.name(frame), row as f64 * ROW);
        let share = weight as f64 * 100.0 / self.all as f64;
        let amount = match self.profile.kind {
            SampleKind::Cpu => format!("{weight} ticks"),
            SampleKind::Heap => format!("{} KiB", weight.div_ceil(1024)),
        };
        let (escaped, colour) = (escape(name), colour(name));
        // Writing to a string doesn't fail.
        let _ = write!(
            self.frames,
            "<g><title>{escaped} ({amount}, {share:.2} %)</title><rect x=\"{x:.1}\" y=\"{y}\" width=\"{width:.1}\" height=\"{}\" \
             fill=\"{colour}\" rx=\"1\"/>",
            ROW - 1.0
        );
        let letters = (1_u16..).take_while(|letters| f64::from(*letters) * LETTER_WIDTH < width);
        let shown: String = name.chars().zip(letters).map(|(letter, _)| letter).collect();
        if shown.len() > 2 {
            text(&mut self.frames, x + 2.0, y + 12.0, &shown);
        }
        self.frames.push_str("</g>\n");
    }
}

fn text(svg: &mut String, x: f64, y: f64, text: &str) {
    // Writing to a string doesn't fail.
    let _ = write!(svg, "<text x=\"{x:.1}\" y=\"{y}\">{}</text>", escape(text));
}

/// A warm colour that a name always has.
fn colour(name: &str) -> String {
    let hash = name.bytes().fold(0_u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
    format!("rgb({},{},{})", 205 + hash % 50, 120 + (hash >> 8) % 110, 60 + (hash >> 16) % 50)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stacks::tests::example;

    #[test]
    fn frames_are_as_wide_as_their_share() {
        let svg = write(&example(SampleKind::Cpu), "forebay <1>");
        for part in [
            "forebay &lt;1&gt;",
            "<title>shard-0 (10 ticks, 100.00 %)</title><rect x=\"10.0\" y=\"0\" width=\"1180.0\"",
            "<title>Vec&lt;[u8; 4]&gt;::push &amp; &quot;x&quot; (6 ticks, 60.00 %)</title><rect x=\"10.0\" y=\"34\" width=\"708.0\"",
            "no symbols",
        ] {
            assert!(svg.contains(part), "{part}\n{svg}");
        }
        assert!(!svg.contains("script") && !svg.contains("href"));
        assert_eq!(svg.matches("<g").count(), svg.matches("</g>").count());
        assert!(write(&Profile { stacks: Vec::new(), ..example(SampleKind::Heap) }, "").ends_with("</svg>\n"));
    }

    #[test]
    fn cpu_time_counts_ticks_of_samples() {
        let mut profile = example(SampleKind::Cpu);
        profile.stacks[1].weight += 2 * HERTZ;
        assert!(write(&profile, "").contains("CPU time of 2.0 s: 2.1 s in 10 samples."), "{}", write(&profile, ""));
    }

    #[test]
    fn narrow_frames_are_left_out() {
        let mut profile = example(SampleKind::Heap);
        profile.stacks[1].weight = 1 << 40;
        let svg = write(&profile, "");
        assert!(svg.contains("KiB, 100.00 %") && !svg.contains("sqlite3Step"));
    }
}
