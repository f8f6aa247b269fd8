//! Errors at the end of a command.

use super::printer::Printer;
use crate::core::text::visible;

/// Shows an error with its hint.
pub fn error(printer: &mut Printer, message: &str) {
    let text = render_error(message, printer.colors());
    printer.last_words(text);
}

/// `error: …`, further lines indented. Harmless whatever the message holds.
pub fn render_error(message: &str, colors: bool) -> String {
    let label = console::style("error:").red().bold().force_styling(colors);
    let shown = visible(message.trim_end());
    let indented: Vec<&str> = shown.split('\n').collect();
    format!("{label} {}", indented.join("\n  "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_are_indented_and_nothing_acts_on_the_terminal() {
        let message = "no PRD.json\x1b[2J here\nrun `ralph init`\n";
        assert_eq!(
            render_error(message, false),
            "error: no PRD.json\\x1b[2J here\n  run `ralph init`"
        );
        assert_eq!(render_error("x", true), "\x1b[31m\x1b[1merror:\x1b[0m x");
    }
}
