//! The list of options in an escalation.

/// A human picks one with a single key.
const MAX_OPTIONS: usize = 9;

/// The options in order, and the lines that belong to none.
pub(super) fn read(text: &str) -> (Vec<String>, String) {
    let mut list = List::default();
    text.lines().filter(|line| !line.trim().is_empty()).for_each(|line| list.take(line));
    if let [only] = list.options.as_slice() {
        list.options = split_inline(only);
    }
    list.options.retain(|option| !option.is_empty());
    (list.options, list.unread.trim().to_owned())
}

#[derive(Default)]
struct List {
    options: Vec<String>,
    unread: String,
    /// The first item's marker: other or deeper markers belong to an item's text.
    first: Option<Item>,
    full: bool,
}

#[derive(Clone, Copy)]
struct Item {
    indent: usize,
    numbered: bool,
}

impl List {
    fn take(&mut self, line: &str) {
        let begun = begin_item(line).filter(|(item, _)| self.is_item(*item));
        self.full |= begun.is_some() && self.options.len() == MAX_OPTIONS;
        match (begun, self.options.last_mut()) {
            (Some((item, text)), _) if !self.full => {
                self.first.get_or_insert(item);
                self.options.push(text.to_owned());
            }
            (None, Some(last)) if !self.full => join(last, line.trim()),
            _ => {
                self.unread.push_str(line);
                self.unread.push('\n');
            }
        }
    }

    fn is_item(&self, item: Item) -> bool {
        self.first.is_none_or(|first| {
            item.indent <= first.indent + 1 && (item.numbered || !first.numbered)
        })
    }
}

fn join(option: &mut String, more: &str) {
    if !option.is_empty() {
        option.push(' ');
    }
    option.push_str(more);
}

/// `1. text`, `1) text`, `- text`.
fn begin_item(line: &str) -> Option<(Item, &str)> {
    let text = line.trim();
    let indent = line.len() - line.trim_start().len();
    let unnumbered = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = unnumbered.len() < text.len();
    let rest = if numbered {
        unnumbered.strip_prefix(['.', ')'])?
    } else {
        text.strip_prefix(['-', '*', '+', '•'])?
    };
    let separate = rest.is_empty() || rest.starts_with(char::is_whitespace);
    separate.then_some((Item { indent, numbered }, rest.trim()))
}

/// `a 2. b 3. c`: a list on one line.
fn split_inline(first: &str) -> Vec<String> {
    let mut options = Vec::new();
    let mut rest = first;
    while let Some((option, after)) = split_before(rest, options.len() + 2) {
        options.push(option.trim().to_owned());
        rest = after;
    }
    options.push(rest.trim().to_owned());
    options
}

fn split_before(text: &str, number: usize) -> Option<(&str, &str)> {
    if number > MAX_OPTIONS {
        return None;
    }
    text.split_once(&format!(" {number}. ")).or_else(|| text.split_once(&format!(" {number}) ")))
}
