//! Case-insensitive search for ASCII words and tags.

use std::ops::Range;

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

/// The first `<name>`; `name` starts with a slash for a closing tag.
pub(super) fn find_tag(text: &str, name: &str) -> Option<Range<usize>> {
    text.match_indices('<').find_map(|(start, _)| {
        let inside = text.get(start + 1..)?;
        let after = strip_ignore_case(inside, name)?.trim_start().strip_prefix('>')?;
        Some(start..text.len() - after.len())
    })
}

/// The start of the first `<name` or `</name` that is not part of a longer name.
pub(super) fn find_tag_start(text: &str, tag: &str) -> Option<usize> {
    text.match_indices('<')
        .map(|(start, _)| start)
        .find(|&start| text.get(start..).is_some_and(|from| starts_with_tag(from, tag)))
}

pub(super) fn starts_with_tag(text: &str, tag: &str) -> bool {
    strip_ignore_case(text, tag).is_some_and(|rest| {
        !rest.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | ':' | '.'))
    })
}
