//! Markdown as blocks: paragraphs, headings and rows of tables. Blocks of code are left out.

/// What a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A paragraph, or an item of a list.
    Paragraph,
    Heading,
    /// A row of a table.
    Row,
}

/// A block, with its line breaks.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) shape: Shape,
    /// The number of its first line.
    pub(super) line: usize,
    pub(super) text: String,
}

/// The blocks of numbered lines without gaps.
pub(super) fn blocks<'a>(lines: impl IntoIterator<Item = (usize, &'a str)>) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let (mut fence, mut is_open) = (None, false);
    for (line, text) in lines {
        let content = text.trim_start().trim_start_matches("> ").trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| content.starts_with(mark));
        if fence.is_some() || mark.is_some() {
            is_open = false;
            fence = match (fence, mark) {
                (None, mark) => mark,
                (Some(open), Some(mark)) if open == mark => None,
                (open, _) => open,
            };
            continue;
        }
        let shape = shape(content);
        let continues = shape == Some(Shape::Paragraph) && is_open && !begins_item(content);
        match (shape, found.last_mut()) {
            (Some(_), Some(last)) if continues => {
                last.text.push('\n');
                last.text.push_str(text);
            }
            (Some(shape), _) => found.push(Block { shape, line, text: text.to_owned() }),
            (None, _) => {}
        }
        is_open = shape == Some(Shape::Paragraph);
    }
    found
}

/// None for a line that only divides others.
fn shape(content: &str) -> Option<Shape> {
    match content.as_bytes() {
        [] | [b'>'] => None,
        [b'|', ..] => Some(Shape::Row),
        [b'#', ..] if content.trim_start_matches('#').starts_with(' ') => Some(Shape::Heading),
        bytes if bytes.iter().all(|byte| *byte == b'-' || *byte == b'=') => None,
        _ => Some(Shape::Paragraph),
    }
}

fn begins_item(content: &str) -> bool {
    let digits = content.bytes().take_while(u8::is_ascii_digit).count();
    let marks: &[&str] = if digits == 0 { &["* ", "- ", "+ "] } else { &[". ", ") "] };
    marks.iter().any(|mark| content[digits..].starts_with(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_has_blocks() {
        let page =
            "# One\ntext\nmore\n\n* item\n  rest\n* item\n```toml\n# code\n```\n| a | b |\n> quote\n1. item\n---\nend";
        let found = blocks((1..).zip(page.lines()));
        let lines: Vec<_> = found.iter().map(|block| (block.shape, block.line, block.text.as_str())).collect();
        assert_eq!(
            lines,
            [
                (Shape::Heading, 1, "# One"),
                (Shape::Paragraph, 2, "text\nmore"),
                (Shape::Paragraph, 5, "* item\n  rest"),
                (Shape::Paragraph, 7, "* item"),
                (Shape::Row, 11, "| a | b |"),
                (Shape::Paragraph, 12, "> quote"),
                (Shape::Paragraph, 13, "1. item"),
                (Shape::Paragraph, 15, "end"),
            ]
        );
    }

    #[test]
    fn fence_ends_at_its_own_mark() {
        for (page, lines) in [
            ("z\n```\na\n~~~\nb\n```\nc", [1, 7]),
            ("z\n~~~\na\n```\nb\n~~~\nc", [1, 7]),
            ("> z\n>\n> ```\n> a\n> ```\n> c", [1, 6]),
        ] {
            let found = blocks((1..).zip(page.lines()));
            assert_eq!(found.iter().map(|block| block.line).collect::<Vec<_>>(), lines, "{page}");
        }
    }

    #[test]
    fn block_ends_at_each_mark() {
        for mark in ["", "===", "---", "| a |", "# a"] {
            assert_eq!(
                blocks((1..).zip(["a", mark, "b"])).iter().filter(|block| block.text != mark).count(),
                2,
                "{mark}"
            );
        }
        for item in ["* a", "- a", "+ a", "1. a", "12) a", "> * a"] {
            assert_eq!(blocks((1..).zip(["a", item])).len(), 2, "{item}");
        }
        assert_eq!(blocks((1..).zip(["> a", ">", "> b"])).len(), 2);
        assert_eq!(blocks((1..).zip(["a", "#12 b"])).len(), 1);
    }
}
