//! Processes by name, for people.

/// Nobody reads a thousand names.
const MOST_NAMES: usize = 12;

pub fn some_of(names: &[String]) -> String {
    let shown = names.get(..MOST_NAMES).unwrap_or(names).join(", ");
    match names.len().saturating_sub(MOST_NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
