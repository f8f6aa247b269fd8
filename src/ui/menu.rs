//! An open question at the bottom of the terminal, with the choices that the human has.

use std::time::Duration;

use crate::model::{Answer, Escalation, EscalationKind};

use super::figures::patience_in_words;
use super::keyboard::KeyPress;
use super::layout::{self, one_line};
use super::look::{Line, Look, TextLine, Tone};

/// Rows above the body of a menu that does not fit: heading and summary.
const SHORT_HEADING: usize = 2;

pub struct Menu {
    heading: String,
    sections: Vec<String>,
    pub patience: Duration,
    /// How long the question waits, and what happens then.
    note: String,
    pub body: MenuBody,
    /// The question was printed above, because it does not fit with the menu.
    pub is_printed: bool,
}

#[derive(Clone, Debug)]
pub enum MenuBody {
    /// One of these is chosen with the next Enter.
    Choices { labels: Vec<String>, selected: usize },
    /// The last line is the one under the cursor.
    Typing { help: String, lines: Vec<String> },
}

impl Menu {
    /// `then`: what happens without an answer.
    pub fn new(heading: String, sections: Vec<String>, patience: Duration, then: &str) -> Self {
        let wait = patience_in_words(patience);
        let note = format!("Without an answer within {wait}, {then}.");
        let body = MenuBody::Choices { labels: Vec::new(), selected: 0 };
        Self { heading, sections, patience, note, body, is_printed: false }
    }

    pub fn is_typing(&self) -> bool {
        matches!(self.body, MenuBody::Typing { .. })
    }

    pub fn question(&self, open: usize) -> [Line; 2] {
        let (heading, sections) = (self.counted(open), self.sections.clone());
        [Line::Blank, Line::Boxed { heading, sections }]
    }

    pub fn whole(&self, look: &Look, open: usize) -> Vec<String> {
        let note: Line = TextLine::new().with(Tone::Dim, self.note.as_str()).into();
        let above = self.question(open).into_iter().chain([note]);
        let above = above.flat_map(|line| look.render(&line));
        above.chain(self.body.rows(look, usize::MAX)).collect()
    }

    /// As much of it as fits into `room` rows.
    pub fn short(&self, look: &Look, room: usize, open: usize) -> Vec<String> {
        let columns = look.columns.unwrap_or_default().saturating_sub(1);
        let summary = self.sections.first().cloned().unwrap_or_default();
        let heading = [(Tone::Strong, self.counted(open)), (Tone::Normal, summary)];
        let heading =
            heading.map(|(tone, text)| look.paint(tone, &layout::cut(&one_line(&text), columns)));
        let above = if room > 2 * SHORT_HEADING { SHORT_HEADING } else { 0 };
        let body = self.body.rows(look, room.saturating_sub(above));
        heading.into_iter().take(above).chain(body).collect()
    }

    /// The count comes first, because a long heading is cut at its end.
    fn counted(&self, open: usize) -> String {
        if open > 1 { format!("1 of {open} · {}", self.heading) } else { self.heading.clone() }
    }
}

impl MenuBody {
    fn rows(&self, look: &Look, room: usize) -> Vec<String> {
        let (room, columns) = (room.max(1), look.columns.unwrap_or_default());
        match self {
            Self::Choices { labels, selected } => {
                // In a low window only the choices around the selected one.
                let last = labels.len().saturating_sub(room);
                let start = selected.saturating_sub(room / 2).min(last);
                let row = |(number, label): (usize, &String)| {
                    let is_selected = number == *selected;
                    let mark = if is_selected { '❯' } else { ' ' };
                    let tone = if is_selected { Tone::Question } else { Tone::Normal };
                    let text = one_line(&format!("{mark} {label}"));
                    look.paint(tone, &layout::cut(&text, columns.saturating_sub(1)))
                };
                labels.iter().enumerate().skip(start).take(room).map(row).collect()
            }
            Self::Typing { help, lines } => {
                let help = look.render(&TextLine::new().with(Tone::Dim, help.as_str()).into());
                let typed = lines.iter().map(|line| format!("> {}", one_line(line)));
                let rows = typed.flat_map(|line| layout::broken(&line, columns.max(1)));
                let all: Vec<String> = help.into_iter().chain(rows).collect();
                let hidden = all.len().saturating_sub(room);
                all.into_iter().skip(hidden).collect()
            }
        }
    }
}

/// The parts of a question, in the order that people need them.
pub fn sections(question: &Escalation) -> Vec<String> {
    let unread = question.unread.as_deref().filter(|text| !text.trim().is_empty());
    let kind = match question.kind {
        EscalationKind::Stuck | EscalationKind::NoProgress => "Stuck",
        EscalationKind::Deviation => "Deviation",
        EscalationKind::Unstated => "Question",
        EscalationKind::Claim => "Claim",
        EscalationKind::Commit => "Commit",
        EscalationKind::Change => "Change",
    };
    let options = question.options.iter().zip(1..);
    let options = options.map(|(option, number)| format!("[{number}] {}", option.trim()));
    vec![
        format!("{kind}: {}", question.summary.trim()),
        question.context.trim().to_owned(),
        options.collect::<Vec<_>>().join("\n"),
        question.question.trim().to_owned(),
        unread.map(|text| format!("Could not be parsed:\n{text}")).unwrap_or_default(),
    ]
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MenuItem<C> {
    /// None from the tenth option on: those are chosen with the arrows.
    pub key: Option<char>,
    pub label: String,
    pub choice: C,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MenuChoice {
    Answer(Answer),
    /// The human wants to write.
    Write,
}

impl<C> MenuItem<C> {
    pub fn new(key: char, label: impl Into<String>, choice: C) -> Self {
        Self { key: Some(key), label: label.into(), choice }
    }

    /// `[1] Use SQLite`.
    pub fn text(&self) -> String {
        format!("[{}] {}", self.key.unwrap_or(' '), self.label)
    }
}

/// The agent's options first, then the answers that are always possible.
pub fn items(question: &Escalation) -> Vec<MenuItem<MenuChoice>> {
    let options = question.options.iter().zip(1..).map(|(text, number)| MenuItem {
        key: char::from_digit(number, 10),
        label: one_line(text.trim()),
        choice: MenuChoice::Answer(Answer::Option { number: number as usize, text: text.clone() }),
    });
    let answer = |key, label, answer| MenuItem::new(key, label, MenuChoice::Answer(answer));
    let is_change = question.kind == EscalationKind::Change;
    let restore = is_change.then(|| answer('r', "restore the original", Answer::Restore));
    let accept = question.kind.can_be_accepted().then(|| {
        let label = if is_change { "accept the change" } else { "accept it as done" };
        answer('y', label, Answer::Accept)
    });
    let retry = (!is_change).then(|| answer('r', "retry", Answer::Retry));
    let always = [
        MenuItem::new('c', "write guidance", MenuChoice::Write),
        answer('s', "skip this story", Answer::Skip),
    ];
    let abort = answer('a', "abort the run", Answer::Abort);
    let own = options.chain(restore).chain(accept).chain(always);
    own.chain(retry).chain([abort]).collect()
}

pub struct MenuList<'i, C> {
    pub selected: usize,
    pub pasting: bool,
    pub items: &'i [MenuItem<C>],
}

impl<'i, C> MenuList<'i, C> {
    pub fn press(&mut self, key: KeyPress) -> Option<&'i MenuItem<C>> {
        let last = self.items.len().saturating_sub(1);
        match key {
            KeyPress::PasteStart => self.pasting = true,
            KeyPress::PasteEnd => self.pasting = false,
            _ if self.pasting => {}
            KeyPress::Up => self.selected = self.selected.checked_sub(1).unwrap_or(last),
            KeyPress::Down => {
                self.selected = if self.selected == last { 0 } else { self.selected + 1 }
            }
            KeyPress::Enter => return self.items.get(self.selected),
            KeyPress::Char(c) => return self.items.iter().find(|item| item.key == Some(c)),
            _ => {}
        }
        None
    }

    pub fn body(&self) -> MenuBody {
        let labels = self.items.iter().map(MenuItem::text).collect();
        MenuBody::Choices { labels, selected: self.selected }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    fn press(options: usize, keys: &[KeyPress]) -> Option<MenuChoice> {
        let items = items(&question(options));
        let mut list = MenuList { selected: 0, pasting: false, items: &items };
        keys.iter().find_map(|key| list.press(*key)).map(|item| item.choice.clone())
    }

    fn option(number: usize) -> Option<MenuChoice> {
        let text = format!("option\n{number}\x1b[2J");
        Some(MenuChoice::Answer(Answer::Option { number, text }))
    }

    #[test]
    fn keys_choose() {
        for (keys, chosen) in [
            (vec![KeyPress::Char('2')], option(2)),
            (vec![KeyPress::Char('c')], Some(MenuChoice::Write)),
            (vec![KeyPress::Char('s')], Some(MenuChoice::Answer(Answer::Skip))),
            (vec![KeyPress::Char('r')], Some(MenuChoice::Answer(Answer::Retry))),
            (vec![KeyPress::Char('a')], Some(MenuChoice::Answer(Answer::Abort))),
            (vec![KeyPress::Enter], option(1)),
            (vec![KeyPress::Down, KeyPress::Enter], option(2)),
            (vec![KeyPress::Up, KeyPress::Enter], Some(MenuChoice::Answer(Answer::Abort))),
            (vec![KeyPress::Up, KeyPress::Down, KeyPress::Enter], option(1)),
            (
                vec![
                    KeyPress::Char('3'),
                    KeyPress::Char('A'),
                    KeyPress::Unknown,
                    KeyPress::Escape,
                    KeyPress::Redraw,
                ],
                None,
            ),
            (
                vec![
                    KeyPress::PasteStart,
                    KeyPress::Char('a'),
                    KeyPress::Enter,
                    KeyPress::PasteEnd,
                ],
                None,
            ),
        ] {
            assert_eq!(press(2, &keys), chosen, "{keys:?}");
        }
        assert_eq!(press(0, &[KeyPress::Enter]), Some(MenuChoice::Write));
        assert_eq!(
            press(
                12,
                &[KeyPress::Down; 11].iter().copied().chain([KeyPress::Enter]).collect::<Vec<_>>()
            ),
            option(12)
        );
    }
}
