//! A unified diff on a terminal.

use console::Style;

use crate::core::text::visible;

/// Harmless first, coloured after that.
pub fn diff(patch: &[u8], colors: bool) -> String {
    let text = String::from_utf8_lossy(patch);
    let shown = visible(&text);
    let mut in_hunk = false;
    let mut painted = String::with_capacity(shown.len());
    for line in shown.split_inclusive('\n') {
        if line.starts_with("diff --git ") {
            in_hunk = false;
        } else if line.starts_with("@@ ") {
            in_hunk = true;
        }
        let (content, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        match style(content, in_hunk).filter(|_| colors) {
            Some(style) => {
                painted.push_str(&style.force_styling(true).apply_to(content).to_string());
            }
            None => painted.push_str(content),
        }
        painted.push_str(end);
    }
    painted
}

/// Within a hunk the first character says it all; before it, everything is about the file.
fn style(line: &str, in_hunk: bool) -> Option<Style> {
    let style = Style::new();
    match line.chars().next() {
        Some('@') if in_hunk => Some(style.cyan()),
        Some('+') if in_hunk => Some(style.green()),
        Some('-') if in_hunk => Some(style.red()),
        _ if in_hunk => None,
        _ => Some(style.bold()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &[u8] =
        b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n---\n+\x1b[2J\xff\n same\n";

    #[test]
    fn what_was_changed_is_coloured_and_acts_on_no_terminal() {
        let painted = diff(PATCH, true);
        assert!(painted.contains("\x1b[1m+++ b/x\x1b[0m\n"), "{painted:?}");
        assert!(painted.contains("\x1b[31m---\x1b[0m\n"), "{painted:?}");
        assert!(painted.contains("\x1b[32m+\\x1b[2J\u{fffd}\x1b[0m\n same\n"), "{painted:?}");
        assert!(!diff(PATCH, false).contains('\x1b'));
    }
}
