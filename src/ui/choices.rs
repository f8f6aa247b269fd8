//! The list under a question: one line per choice, one key each.

use std::ops::Range;

use super::conversation::Conversation;
use super::keys::Key;
use super::line::Tone;
use super::look::{Look, one_line};
use super::region::Region;
use super::wrap;
use crate::core::event::Answer;
use crate::core::signal::Escalation;
use crate::engine::ports::Asked;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item<C> {
    /// None from the tenth option on: those are chosen with the arrows.
    pub key: Option<char>,
    pub label: String,
    pub choice: C,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    Answer(Answer),
    /// The human wants to write.
    Write,
}

impl<C> Item<C> {
    /// `[1] Use SQLite`.
    pub fn text(&self) -> String {
        format!("[{}] {}", self.key.unwrap_or(' '), self.label)
    }
}

/// The agent's options first, then what is always possible.
pub fn items(question: &Escalation) -> Vec<Item<Choice>> {
    let options = question.options.iter().zip(1..).map(|(text, number)| Item {
        key: char::from_digit(number, 10),
        label: one_line(text.trim()),
        choice: Choice::Answer(Answer::Option { number: number as usize, text: text.clone() }),
    });
    let may_accept = question.kind.can_be_accepted();
    let accept = may_accept.then_some(('y', "accept it as done", Choice::Answer(Answer::Accept)));
    let always = [
        ('c', "write guidance", Choice::Write),
        ('s', "skip this story", Choice::Answer(Answer::Skip)),
        ('r', "retry", Choice::Answer(Answer::Retry)),
        ('a', "abort the run", Choice::Answer(Answer::Abort)),
    ];
    let always = accept.into_iter().chain(always);
    let always =
        always.map(|(key, label, choice)| Item { key: Some(key), label: label.to_owned(), choice });
    options.chain(always).collect()
}

/// Shows the list until something is chosen; then it is gone from the screen.
pub fn choose<'i, C>(
    conversation: &mut Conversation<'_>,
    items: &'i [Item<C>],
) -> Result<&'i Item<C>, Asked> {
    let mut region = Region::default();
    let chosen = wait_for_choice(conversation, items, &mut region);
    region.clear(&conversation.terminal);
    chosen
}

fn wait_for_choice<'i, C>(
    conversation: &mut Conversation<'_>,
    items: &'i [Item<C>],
    region: &mut Region,
) -> Result<&'i Item<C>, Asked> {
    let mut list = List { selected: 0, pasting: false, items };
    loop {
        let room = conversation.rows().saturating_sub(1);
        let lines = list.draw(&conversation.look, room, conversation.columns());
        region.draw(&conversation.terminal, lines);
        if let Some(chosen) = list.press(conversation.next()?) {
            return Ok(chosen);
        }
    }
}

struct List<'i, C> {
    selected: usize,
    pasting: bool,
    items: &'i [Item<C>],
}

impl<'i, C> List<'i, C> {
    fn press(&mut self, key: Key) -> Option<&'i Item<C>> {
        let last = self.items.len().saturating_sub(1);
        match key {
            Key::PasteStart => self.pasting = true,
            Key::PasteEnd => self.pasting = false,
            _ if self.pasting => {}
            Key::Up => self.selected = self.selected.checked_sub(1).unwrap_or(last),
            Key::Down => self.selected = if self.selected == last { 0 } else { self.selected + 1 },
            Key::Enter => return self.items.get(self.selected),
            Key::Char(c) => return self.items.iter().find(|item| item.key == Some(c)),
            _ => {}
        }
        None
    }

    /// Each item on one line, and only those around the chosen one where the window is low.
    fn draw(&self, look: &Look, room: usize, columns: usize) -> Vec<String> {
        let shown = window(self.selected, self.items.len(), room.max(1));
        let line = |(number, item): (usize, &Item<C>)| {
            let text =
                |mark| wrap::cut(&format!("{mark} {}", item.text()), columns.saturating_sub(1));
            if number == self.selected {
                look.paint(Tone::Question, &text('❯'))
            } else {
                look.paint(Tone::Normal, &text(' '))
            }
        };
        self.items.iter().enumerate().skip(shown.start).take(shown.len()).map(line).collect()
    }
}

fn window(selected: usize, count: usize, room: usize) -> Range<usize> {
    let start = selected.saturating_sub(room / 2).min(count.saturating_sub(room));
    start..count.min(start + room)
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::*;
    use crate::core::signal::EscalationKind;

    fn question(options: usize) -> Escalation {
        Escalation {
            kind: EscalationKind::Stuck,
            summary: "s".into(),
            context: String::new(),
            options: (1..=options).map(|n| format!("option\n{n}\x1b[2J")).collect(),
            question: "q".into(),
            unread: None,
        }
    }

    fn press(options: usize, keys: &[Key]) -> Option<Choice> {
        let items = items(&question(options));
        let mut list = List { selected: 0, pasting: false, items: &items };
        keys.iter().find_map(|key| list.press(*key)).map(|item| item.choice.clone())
    }

    fn option(number: usize) -> Option<Choice> {
        let text = format!("option\n{number}\x1b[2J");
        Some(Choice::Answer(Answer::Option { number, text }))
    }

    #[test]
    fn keys_choose() {
        for (keys, chosen) in [
            (vec![Key::Char('2')], option(2)),
            (vec![Key::Char('c')], Some(Choice::Write)),
            (vec![Key::Char('s')], Some(Choice::Answer(Answer::Skip))),
            (vec![Key::Char('r')], Some(Choice::Answer(Answer::Retry))),
            (vec![Key::Char('a')], Some(Choice::Answer(Answer::Abort))),
            (vec![Key::Enter], option(1)),
            (vec![Key::Down, Key::Enter], option(2)),
            (vec![Key::Up, Key::Enter], Some(Choice::Answer(Answer::Abort))),
            (vec![Key::Up, Key::Down, Key::Enter], option(1)),
            (vec![Key::Char('3'), Key::Char('A'), Key::Unknown, Key::Escape, Key::Resized], None),
            (vec![Key::PasteStart, Key::Char('a'), Key::Enter, Key::PasteEnd], None),
        ] {
            assert_eq!(press(2, &keys), chosen, "{keys:?}");
        }
        assert_eq!(press(0, &[Key::Enter]), Some(Choice::Write));
        assert_eq!(
            press(12, &[Key::Down; 11].iter().copied().chain([Key::Enter]).collect::<Vec<_>>()),
            option(12)
        );
    }

    #[test]
    fn the_list_is_harmless_and_fits() {
        let items = items(&question(12));
        let list = List { selected: 11, pasting: false, items: &items };
        let look = Look { colors: false, columns: Some(18), zone: TimeZone::UTC };
        insta::assert_snapshot!(list.draw(&look, 5, 18).join("\n"), @r"
          [ ] option 10\…
          [ ] option 11\…
        ❯ [ ] option 12\…
          [c] write guid…
          [s] skip this …
        ");
        assert_eq!(list.draw(&look, 100, 18).len(), 16);
        assert_eq!(list.draw(&look, 0, 0).len(), 1);
    }
}
