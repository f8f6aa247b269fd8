//! Lines of output and how they look: text and tone first, then width, colors, times.
//!
//! This is the only place where content becomes terminal output, so it makes control characters
//! visible. Colors are added after that.

use console::Style;
use jiff::tz::TimeZone;

use crate::model::{StoryId, Wait, shorten, visible_line};

use super::figures::{clock, day_and_time};
use super::layout::{self, one_line};

/// The longest error or summary that one line shows.
pub(super) const LONGEST: usize = 300;

/// What a piece of text is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    #[default]
    Normal,
    Good,
    Bad,
    Warning,
    Question,
    Strong,
    Dim,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    /// An empty one.
    Blank,
    /// A heading over the whole width.
    Rule(String),
    /// Words in tones.
    Text(TextLine),
    /// An agent or a gate starts. An animated screen shows the live line instead.
    Running { at: i64, attempt: String, agent: LiveAgent },
    /// The run waits. An animated screen counts down as well.
    Waiting(Wait),
    /// A box with its heading in the frame.
    Boxed { heading: String, sections: Vec<String> },
}

/// An agent or a gate that runs: with the forecast, the run's health unless it is good, and what it
/// does now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LiveAgent {
    /// None for the baseline's gates.
    pub story: Option<StoryId>,
    pub name: String,
    pub to_go: Option<String>,
    pub health: Option<&'static str>,
    pub doing: String,
}

/// `US-004: `.
pub fn of_story(story: Option<&StoryId>) -> String {
    story.map(|story| format!("{story}: ")).unwrap_or_default()
}

/// One line of text, with the time in front if it has one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextLine {
    pub at: Option<i64>,
    pub parts: Vec<(Tone, String)>,
}

impl TextLine {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn warning(content: impl Into<String>) -> Self {
        Self::new().with(Tone::Warning, "warning: ").plain(content)
    }

    pub fn at(at: i64) -> Self {
        Self { at: Some(at), parts: Vec::new() }
    }

    /// Content may be anything: `Look` makes control characters visible.
    pub fn with(mut self, tone: Tone, content: impl Into<String>) -> Self {
        self.parts.push((tone, content.into()));
        self
    }

    pub fn plain(self, content: impl Into<String>) -> Self {
        self.with(Tone::Normal, content)
    }

    /// Figures at the end of a line: ` · 12s · $0.31`.
    pub fn figures(self, figures: impl IntoIterator<Item = String>) -> Self {
        figures.into_iter().fold(self, |text, figure| text.with(Tone::Dim, format!(" · {figure}")))
    }
}

impl From<TextLine> for Line {
    fn from(text: TextLine) -> Self {
        Self::Text(text)
    }
}

/// The width of boxes without a terminal.
const LOG_WIDTH: usize = 62;
/// Columns of `[10:00:00] `.
const STAMP: usize = 11;
const MIN_WIDTH: usize = 20;
const MAX_WIDTH: usize = 100;

#[derive(Clone, Debug)]
pub struct Look {
    pub colors: bool,
    /// The terminal's columns; None in a log.
    pub columns: Option<usize>,
    pub zone: TimeZone,
}

impl Look {
    pub fn width(&self) -> usize {
        self.columns.map_or(LOG_WIDTH, |columns| columns.clamp(MIN_WIDTH, MAX_WIDTH))
    }

    /// The rows that are written to the terminal.
    pub fn render(&self, line: &Line) -> Vec<String> {
        match line {
            Line::Blank => vec![String::new()],
            Line::Rule(title) => vec![self.rule(title)],
            Line::Text(text) => self.text(text),
            Line::Running { at, agent, .. } => {
                self.text(&TextLine::at(*at).plain(format!("Running {} …", agent.name)))
            }
            Line::Waiting(wait) => {
                let until = day_and_time(wait.until, &self.zone);
                self.text(&TextLine::warning(format!("{}; waiting until {until}", wait.error)))
            }
            Line::Boxed { heading, sections } => layout::boxed(heading, sections, self.width()),
        }
    }

    pub fn paint(&self, tone: Tone, content: &str) -> String {
        style(tone).force_styling(self.colors).apply_to(one_line(content)).to_string()
    }

    fn rule(&self, title: &str) -> String {
        let title = one_line(title);
        if self.columns.is_none() {
            return format!("━━━ {title} ━━━");
        }
        // "━━━ " before, " ━━━" after.
        let title = layout::cut(title.trim(), self.width().saturating_sub(8));
        let rest = self.width().saturating_sub(5 + layout::width(&title));
        format!("━━━ {} {}", self.paint(Tone::Strong, &title), "━".repeat(rest))
    }

    /// One row in a log; in a terminal as many as its width needs, broken between words.
    fn text(&self, line: &TextLine) -> Vec<String> {
        let stamp =
            line.at.map(|at| (Tone::Dim, format!("[{}] ", clock(at, &self.zone, "%H:%M:%S"))));
        let shown = line.parts.iter().map(|(tone, content)| (*tone, one_line(content)));
        let parts: Vec<_> = stamp.into_iter().chain(shown).collect();
        let paint = |row: Vec<(Tone, String)>| {
            row.iter().map(|(tone, content)| self.paint(*tone, content)).collect()
        };
        let Some(columns) = self.columns else { return vec![paint(parts)] };
        let indent = parts.first().map_or(0, |(_, text)| layout::leading_spaces(text));
        let hanging = if line.at.is_some() { STAMP } else { indent };
        layout::flow(parts, columns, hanging).into_iter().map(paint).collect()
    }
}

fn style(tone: Tone) -> Style {
    let style = Style::new();
    match tone {
        Tone::Normal => style,
        Tone::Good => style.green(),
        Tone::Bad => style.red(),
        Tone::Warning => style.yellow(),
        Tone::Question => style.cyan().bold(),
        Tone::Strong => style.bold(),
        Tone::Dim => style.dim(),
    }
}

pub(super) fn labeled(
    at: i64,
    tone: Tone,
    label: impl Into<String>,
    text: impl Into<String>,
) -> TextLine {
    TextLine::at(at).with(tone, label).plain(text)
}

/// Names in one line.
pub(super) fn listed(names: &[impl ToString]) -> String {
    let names: Vec<String> = names.iter().map(|name| visible_line(&name.to_string())).collect();
    shorten(&names.join(", "), LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(columns: Option<usize>, colors: bool) -> Look {
        Look { colors, columns, zone: TimeZone::UTC }
    }

    fn rule(columns: Option<usize>, title: &str) -> String {
        look(columns, false).render(&Line::Rule(title.to_owned())).join("\n")
    }

    #[test]
    fn rules_fill_the_width_and_never_more() {
        assert_eq!(rule(None, "a title"), "━━━ a title ━━━");
        assert_eq!(rule(Some(24), "a title"), "━━━ a title ━━━━━━━━━━━━");
        assert_eq!(rule(Some(24), "漢字漢字漢字漢字漢字"), "━━━ 漢字漢字漢字漢… ━━━━");
        assert_eq!(layout::width(&rule(Some(7), "x")), MIN_WIDTH);
        assert_eq!(layout::width(&rule(Some(300), "x")), MAX_WIDTH);
    }

    #[test]
    fn colors_come_after_sanitizing() {
        let line = TextLine::at(0).with(Tone::Good, "a\x1b[2J\nb").into();
        assert_eq!(look(None, false).render(&line), ["[00:00:00] a\\x1b[2J b"]);
        let painted = look(None, true).render(&line).join("");
        assert_eq!(painted, "\x1b[2m[00:00:00] \x1b[0m\x1b[32ma\\x1b[2J b\x1b[0m");
    }

    #[test]
    fn a_long_line_is_broken_between_words_in_a_terminal() {
        let long =
            TextLine::at(0).with(Tone::Question, "? US-002 asks: ").plain("which of the two?");
        let render = |columns| look(columns, false).render(&long.clone().into()).join("\n");
        assert_eq!(render(None), "[00:00:00] ? US-002 asks: which of the two?");
        assert_eq!(render(Some(32)), "[00:00:00] ? US-002 asks: which\n           of the two?");
    }

    #[test]
    fn an_impossible_time_is_shown_as_such() {
        assert_eq!(look(None, false).render(&TextLine::at(i64::MAX).into()), ["[--:--:--] "]);
    }
}
