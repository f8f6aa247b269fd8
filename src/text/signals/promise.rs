//! The promise that the whole backlog is done.

/// The line is only the promise, maybe bold or italic.
pub(super) fn is_promise(line: &str) -> bool {
    promised(line).is_some_and(|word| word.eq_ignore_ascii_case("done"))
}

/// What the line promises, if it is only a promise.
pub(super) fn promised(line: &str) -> Option<&str> {
    let text = without_emphasis(line.trim());
    text.strip_prefix("<promise>")?.strip_suffix("</promise>").map(str::trim)
}

fn without_emphasis(mut text: &str) -> &str {
    while let Some(inner) = without_pair(text, '*').or_else(|| without_pair(text, '_')) {
        text = inner;
    }
    text
}

fn without_pair(text: &str, mark: char) -> Option<&str> {
    text.strip_prefix(mark)?.strip_suffix(mark)
}
