//! Markdown, as far as signals need it: whether a line is prose, or code, quote or comment, and the
//! decoration of a line that does not change its meaning.
//!
//! Follows `CommonMark` for code fences, quotes, comments and indented code as far as one pass
//! over lines can; in doubt a line is not prose.

/// Symbols that mean the opposite, or "not yet".
const DOUBTS: &str = "❌❎✗✘✕✖☐☒❓❔⏳⌛⏰⏸🚫⛔🔜🚧⚠🤔🛑🟡🟠🔴🔄👎🙅🤷⬜◻◽□▢🔲🔳❯❮❛❜❝❞";

/// Checked boxes and emoji in words.
#[rustfmt::skip]
const DONE: [&str; 13] = [
    "[x]", "[X]", "[✓]", "[✔]", "[✅]", ":white_check_mark:", ":heavy_check_mark:",
    ":ballot_box_with_check:", ":tada:", ":rocket:", ":sparkles:", ":100:", ":+1:",
];

/// What a line is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LineRole {
    Prose,
    /// Part of the line is a comment; this is the rest of it.
    WithComment(String),
    /// Code, quote or comment.
    Hidden,
}

/// What the lines so far leave open.
#[derive(Default)]
pub(super) enum MarkdownState {
    #[default]
    Prose,
    Fence(Fence),
    Comment,
}

pub(super) struct Fence {
    mark: char,
    length: usize,
    /// Opened after a list marker, so its end is indented too.
    in_list: bool,
}

impl MarkdownState {
    /// Classifies the next line.
    pub(super) fn enter(&mut self, line: &str) -> LineRole {
        match self {
            Self::Fence(fence) => {
                if fence.is_closed_by(line) {
                    *self = Self::Prose;
                }
                LineRole::Hidden
            }
            Self::Comment => self.enter_comment(line),
            Self::Prose => self.enter_prose(line),
        }
    }

    fn enter_prose(&mut self, line: &str) -> LineRole {
        let indented = is_indented(line);
        let (content, in_list) = without_list_markers(line.trim_start());
        if !indented && content.starts_with('>') {
            return LineRole::Hidden;
        }
        if !indented && let Some(fence) = Fence::opened_by(content, in_list) {
            *self = Self::Fence(fence);
            return LineRole::Hidden;
        }
        let standing =
            if line.contains("<!--") { self.enter_comment(line) } else { LineRole::Prose };
        if indented || (in_list && is_code_in_list(content)) { LineRole::Hidden } else { standing }
    }

    fn enter_comment(&mut self, line: &str) -> LineRole {
        let mut visible = String::new();
        let mut rest = line;
        let mut inside = matches!(self, Self::Comment);
        let mut touched = inside;
        loop {
            let next = if inside {
                // `<!-->` and `<!--->` are whole comments, hence the dashes of the opening count.
                rest.split_once("-->").map(|(_, after)| after)
            } else {
                before_comment(rest, &mut visible)
            };
            let Some(after) = next else { break };
            (rest, inside, touched) = (after, !inside, true);
        }
        *self = if inside { Self::Comment } else { Self::Prose };
        if touched { LineRole::WithComment(visible) } else { LineRole::Prose }
    }
}

/// Moves the text up to the next comment to `visible`; what is left starts with its dashes.
fn before_comment<'a>(rest: &'a str, visible: &mut String) -> Option<&'a str> {
    let mut from = rest;
    loop {
        let at = from.find(['`', '<']);
        let Some((plain, marked)) = at.and_then(|at| from.split_at_checked(at)) else {
            visible.push_str(from);
            return None;
        };
        visible.push_str(plain);
        if marked.starts_with("<!--") {
            return marked.strip_prefix("<!");
        }
        let (taken, after) = split_code_span(marked);
        visible.push_str(taken);
        from = after;
    }
}

/// A code span, or the one run of marks that opens none.
fn split_code_span(marked: &str) -> (&str, &str) {
    let after = marked.trim_start_matches('`');
    let ticks = marked.len() - after.len();
    if ticks == 0 {
        return marked.split_at_checked(1).unwrap_or((marked, ""));
    }
    let closing = runs_of_ticks(after).find(|run| run.len() == ticks);
    let end = ticks + closing.map_or(0, |run| run.end);
    marked.split_at_checked(end).unwrap_or((marked, ""))
}

fn runs_of_ticks(text: &str) -> impl Iterator<Item = std::ops::Range<usize>> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let start = from + text.get(from..)?.find('`')?;
        let run = text.get(start..)?;
        from = start + run.len() - run.trim_start_matches('`').len();
        Some(start..from)
    })
}

impl Fence {
    fn opened_by(content: &str, in_list: bool) -> Option<Self> {
        let content = content.trim_start();
        let mark = content.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let info = content.trim_start_matches(mark);
        let length = content.len() - info.len();
        let opens = length >= 3 && !(mark == '`' && info.contains('`'));
        opens.then_some(Self { mark, length, in_list })
    }

    fn is_closed_by(&self, line: &str) -> bool {
        let content = line.trim();
        let length = content.len() - content.trim_start_matches(self.mark).len();
        let is_run = length == content.len() && length >= self.length;
        is_run && (self.in_list || !is_indented(line))
    }
}

/// Four columns of any white space, or a tab.
fn is_indented(line: &str) -> bool {
    let margin = line.chars().take_while(|c| c.is_whitespace()).take(4);
    let width = margin.map(|c| if c == '\t' { 4 } else { 1 }).sum::<usize>();
    width >= 4 && !line.trim().is_empty()
}

/// What is left starts with the space behind the last marker, if there was one.
fn without_list_markers(text: &str) -> (&str, bool) {
    let mut rest = text;
    while let Some(less) = without_list_marker(rest.trim_start()) {
        rest = less;
    }
    let in_list = rest.len() < text.len();
    (if is_code_in_list(rest) { rest } else { rest.trim_start() }, in_list)
}

fn without_list_marker(text: &str) -> Option<&str> {
    let rest = after_number(text).or_else(|| text.strip_prefix(['-', '*', '+']))?;
    rest.starts_with([' ', '\t']).then_some(rest)
}

/// Five spaces behind a marker: one is the marker's, four make it code.
fn is_code_in_list(after_marker: &str) -> bool {
    after_marker.starts_with("     ")
}

/// Strips bullets, headings, emphasis, checked boxes and emoji from the front.
pub(super) fn without_leading(line: &str) -> &str {
    let text = line.trim_start_matches('\u{feff}').trim_start();
    let numbered = after_number(text).filter(|rest| rest.starts_with(char::is_whitespace));
    let mut rest = numbered.map_or(text, str::trim_start);
    while let Some(less) = without_symbol(rest).or_else(|| without_rule(rest)) {
        rest = less.trim_start();
    }
    rest
}

/// Only decoration, with at most one full stop.
pub(super) fn is_trailing(text: &str) -> bool {
    let mut rest = text.trim_start();
    let mut stopped = false;
    while !rest.is_empty() {
        let stop = if stopped { None } else { rest.strip_prefix('.') };
        stopped |= stop.is_some();
        let less = stop.or_else(|| without_symbol(rest));
        let Some(less) = less.or_else(|| rest.strip_prefix(['!', '#', '=', '-'])) else {
            return false;
        };
        rest = less.trim_start();
    }
    true
}

/// Skips emphasis and white space, of which there must be some.
pub(super) fn after_gap(text: &str) -> Option<&str> {
    let rest = without_gap(text);
    let gap = text.strip_suffix(rest)?;
    gap.contains(char::is_whitespace).then_some(rest)
}

pub(super) fn without_gap(text: &str) -> &str {
    text.trim_start_matches(|c| is_emphasis(c) || c.is_whitespace())
}

pub(super) fn is_emphasis(c: char) -> bool {
    matches!(c, '*' | '_')
}

pub(super) fn is_doubt(c: char) -> bool {
    DOUBTS.contains(c)
}

fn without_symbol(text: &str) -> Option<&str> {
    let is_bullet = |c| matches!(c, '•' | '‣' | '·' | '–' | '—' | '∙');
    text.strip_prefix(|c| is_emphasis(c) || is_bullet(c) || is_emoji(c))
        .or_else(|| DONE.iter().find_map(|symbol| text.strip_prefix(symbol)))
}

/// `- `, `## `, `=== `: without the space it is a diff, a tag, an option.
fn without_rule(text: &str) -> Option<&str> {
    let mark = text.chars().next().filter(|c| matches!(c, '-' | '+' | '=' | '#'))?;
    let rest = match mark {
        '+' => text.strip_prefix('+')?,
        _ => text.trim_start_matches(mark),
    };
    rest.starts_with(char::is_whitespace).then_some(rest)
}

/// Skips the number of a list item: `1.` or `1)`.
pub(super) fn after_number(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    if rest.len() < text.len() { rest.strip_prefix(['.', ')']) } else { None }
}

fn is_emoji(c: char) -> bool {
    let drawn = matches!(c,
        '\u{2190}'..='\u{21ff}' | '\u{23e9}'..='\u{23ff}' | '\u{25a0}'..='\u{27bf}'
        | '\u{2b00}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}' | '\u{fe0f}' | '\u{200d}');
    drawn && !is_doubt(c)
}

pub(super) fn find_ignore_case(text: &str, needle: &str) -> Option<usize> {
    let needle = needle.as_bytes();
    let first = needle.first()?.to_ascii_lowercase();
    text.as_bytes().windows(needle.len()).position(|part| {
        // Comparing the first byte alone is cheaper and rejects most places.
        part.first().is_some_and(|byte| byte.to_ascii_lowercase() == first)
            && part.eq_ignore_ascii_case(needle)
    })
}

pub(super) fn strip_ignore_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (head, rest) = text.split_at_checked(prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then_some(rest)
}
