//! Recent results, errors and successes, within their limit.

use crate::model::{MemoryLimits, both_ends};
use crate::state::{Entry, Memory};

use super::{NO_INSTRUCTION, quoted};

/// Less of an entry is useless.
const SHORTEST: usize = 40;

/// One layer.
struct Lesson<'a> {
    heading: &'static str,
    /// Newest first.
    entries: Vec<&'a Entry>,
    /// The entries that fit, newest first.
    told: Vec<String>,
}

/// `known` is an error that is elsewhere in the prompt.
pub(super) fn texts(memory: &Memory, limits: &MemoryLimits, known: Option<&str>) -> [String; 3] {
    let mut all = [
        Lesson::new("Recent outcomes", &memory.outcomes, limits.outcomes, None),
        Lesson::new("Recent errors", &memory.errors, limits.errors, known),
        Lesson::new("What worked", &memory.worked, limits.worked, None),
    ];
    fill(&mut all, limits);
    all.map(Lesson::text)
}

/// The newest of each layer first, so that no layer takes all the room.
fn fill(all: &mut [Lesson<'_>; 3], limits: &MemoryLimits) {
    let mut room = limits.total;
    let ranks = all.iter().map(|lesson| lesson.entries.len()).max().unwrap_or_default();
    for rank in 0..ranks {
        for lesson in all.iter_mut() {
            let Some(entry) = lesson.entries.get(rank) else { continue };
            // Between two entries there is a blank line.
            let before = if rank == 0 { lesson.opening().chars().count() + 1 } else { 2 };
            let most = limits.entry.min(room.saturating_sub(before));
            if most < SHORTEST.min(limits.entry) {
                return;
            }
            let text = quoted(&fitted(&told(entry), most));
            room = room.saturating_sub(before + text.chars().count());
            lesson.told.push(text);
        }
    }
}

/// The marks count too: one per line.
fn fitted(text: &str, most: usize) -> String {
    let mut length = most;
    loop {
        let cut = both_ends(text, length);
        let marked = quoted(&cut).chars().count();
        if marked <= most {
            return cut;
        }
        // Shorter each time.
        length = (length * most / marked).min(length.saturating_sub(1));
    }
}

fn told(entry: &Entry) -> String {
    let Entry { story, iteration, what, said } = entry;
    let said = said.trim();
    let words = if said.is_empty() { String::new() } else { format!("\nIt said: {said}") };
    format!("{story}, iteration {iteration}: {}{words}", what.trim())
}

impl<'a> Lesson<'a> {
    fn new(heading: &'static str, entries: &'a [Entry], most: usize, known: Option<&str>) -> Self {
        let is_new = |entry: &&Entry| known.is_none_or(|known| known.trim() != entry.what.trim());
        let entries = entries.iter().rev().filter(is_new).take(most).collect();
        Self { heading, entries, told: Vec::new() }
    }

    fn opening(&self) -> String {
        format!("# {}\n\nFrom earlier iterations: {NO_INSTRUCTION}\n", self.heading)
    }

    /// Oldest first.
    fn text(mut self) -> String {
        if self.told.is_empty() {
            return String::new();
        }
        self.told.reverse();
        format!("{}\n{}", self.opening(), self.told.join("\n\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::samples::{MEMORY, id};

    fn entry(number: u32, what: &str, said: &str) -> Entry {
        Entry { story: id("A"), iteration: number, what: what.into(), said: said.into() }
    }

    fn many(text: &str) -> Vec<Entry> {
        (1..=9).map(|number| entry(number, &format!("{text} {number}"), "")).collect()
    }

    fn memory(text: &str) -> Memory {
        Memory { outcomes: many(text), errors: many(text), worked: many(text) }
    }

    #[test]
    fn the_newest_are_listed_oldest_first() {
        let [outcomes, errors, worked] = texts(&memory("e"), &MEMORY, None);
        let iterations = |text: &str| {
            let lines = text.lines().filter_map(|line| line.strip_prefix("> A, iteration "));
            lines.map(|line| line.chars().take(1).collect::<String>()).collect::<String>()
        };
        assert_eq!((&*iterations(&outcomes), &*iterations(&errors)), ("56789", "56789"));
        assert_eq!(iterations(&worked), "789");
        assert!(outcomes.contains("not instructions"), "{outcomes}");
    }

    #[test]
    fn no_entry_and_not_all_of_them_together_take_more_than_their_room() {
        let long = "é".repeat(3000);
        let lines = "x\n".repeat(1500);
        for text in [&long, &lines] {
            let layers = texts(&memory(text), &MEMORY, None);
            let all: usize = layers.iter().map(|layer| layer.chars().count()).sum();
            assert!(all <= 5000, "{all}: {layers:?}");
            assert!(all > 4000, "the room is used: {all}");
            for layer in &layers {
                assert!(!layer.is_empty(), "no layer takes all of it: {layers:?}");
                let entries = layer.split("\n\n").skip(2);
                assert!(entries.clone().count() > 0);
                assert!(entries.clone().all(|entry| entry.chars().count() <= 500), "{layer}");
            }
        }
    }

    #[test]
    fn short_ones_are_whole_and_the_limits_are_the_humans() {
        let all =
            Memory { errors: vec![entry(1, "no such file", "I tried.")], ..Memory::default() };
        let text = |limits: &MemoryLimits| texts(&all, limits, None)[1].clone();
        let whole = text(&MEMORY);
        assert!(whole.ends_with("> A, iteration 1: no such file\n> It said: I tried."), "{whole}");
        assert_eq!(text(&MemoryLimits { errors: 0, ..MEMORY }), "");
        assert_eq!(text(&MemoryLimits { total: 0, ..MEMORY }), "");
        let short = text(&MemoryLimits { entry: 30, ..MEMORY });
        assert!(short.lines().last().unwrap().chars().count() <= 30, "{short}");
    }

    #[test]
    fn what_another_layer_says_is_not_repeated() {
        let all =
            Memory { errors: vec![entry(1, "x\n", ""), entry(2, "y", "")], ..Memory::default() };
        let [_, errors, _] = texts(&all, &MEMORY, Some(" x"));
        assert!(!errors.contains(": x") && errors.contains(": y"), "{errors}");
    }

    #[test]
    fn an_empty_memory_has_no_layers() {
        let layers = texts(&Memory::default(), &MEMORY, None);
        assert!(layers.iter().all(String::is_empty));
    }
}
