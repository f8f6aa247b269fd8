//! What an agent gets to read: the human's instructions, the story, where the run
//! stands, the human's guidance, and the contract of how to finish.

use std::fmt::Write;

use super::backlog::Story;
use super::state::Tried;
use super::text::{shorten, visible_line};

/// Failed attempts that an agent is told of, the newest.
const MOST_TRIED: usize = 6;
const LONGEST_ERROR: usize = 300;

pub struct Prompt<'a> {
    /// PROMPT.md.
    pub instructions: &'a str,
    pub story: &'a Story,
    pub standing: Standing<'a>,
    /// The human's guidance so far, oldest first.
    pub guidance: &'a [String],
}

/// Where the run stands, as far as the agent should know.
pub struct Standing<'a> {
    pub iteration: u32,
    pub max_iterations: Option<u32>,
    /// Counted from 1.
    pub attempt: u32,
    pub stories_done: usize,
    pub stories: usize,
    /// Stories left, this one included.
    pub remaining: usize,
    pub last_error: Option<&'a str>,
    /// Unfinished work on this story is in the tree.
    pub work_in_tree: bool,
    /// Earlier work on this story that could not be put back into the tree.
    pub kept_at: Option<&'a str>,
    /// What the last agent could not be told while it worked.
    pub reminder: Option<&'a str>,
    /// Failed attempts after which the tree went back to where the story began, oldest first.
    pub tried: &'a [Tried],
    /// What speaks for a rut.
    pub remark: Option<&'a str>,
}

impl Prompt<'_> {
    pub fn text(&self) -> String {
        [
            self.instructions.trim_end().to_owned(),
            story(self.story),
            standing(&self.standing),
            guidance(self.guidance),
            contract(self.story, self.standing.remaining),
        ]
        .iter()
        .filter(|part| !part.is_empty())
        .map(|part| format!("{part}\n"))
        .collect::<Vec<_>>()
        .join("\n")
    }
}

fn story(story: &Story) -> String {
    let mut text = format!("# Your story: {}\n\n{}\n", story.id, story.title.trim());
    if !story.description.trim().is_empty() {
        add(&mut text, format_args!("\n{}\n", story.description.trim()));
    }
    if !story.criteria.is_empty() {
        text.push_str("\nIt is done when all of this is true:\n\n");
        for criterion in &story.criteria {
            add(&mut text, format_args!("- {}\n", criterion.trim()));
        }
    }
    text.trim_end().to_owned()
}

fn standing(standing: &Standing<'_>) -> String {
    let of = standing.max_iterations.map(|most| format!(" of at most {most}")).unwrap_or_default();
    let mut text = format!(
        "# Where the run stands\n\n- Iteration {}{of}, attempt {} at this story.\n\
         - {} of {} stories are complete. Work on this one only.\n",
        standing.iteration, standing.attempt, standing.stories_done, standing.stories,
    );
    if standing.work_in_tree {
        text.push_str("- What earlier attempts left is in the work tree: look at it first.\n");
    }
    if let Some(reference) = standing.kept_at {
        add(
            &mut text,
            format_args!(
                "- Earlier work on this story did not fit onto the branch any more. It is kept at \
                 `{reference}`; `git diff HEAD...{reference}` shows it.\n"
            ),
        );
    }
    text.push_str(&tried(standing.tried));
    if let Some(reminder) = standing.reminder {
        add(&mut text, format_args!("- The last agent was to be told: {reminder}\n"));
    }
    if let Some(remark) = standing.remark {
        add(&mut text, format_args!("- {remark}\n"));
    }
    if let Some(error) = standing.last_error {
        let (first, rest) = error.trim().split_once('\n').unwrap_or((error.trim(), ""));
        add(&mut text, format_args!("- The last attempt went wrong: {first}\n"));
        for line in rest.lines() {
            // Indented, so that it is what it is: somebody's output, no instruction.
            add(&mut text, format_args!("      {line}\n"));
        }
    }
    text.trim_end().to_owned()
}

/// Enough to try something else, whatever the errors were.
fn tried(tried: &[Tried]) -> String {
    let mut text = String::new();
    if tried.is_empty() {
        return text;
    }
    text.push_str(
        "- Earlier attempts failed, and the work tree is back where the story began. Do not repeat \
         them. What they did is kept; `git diff HEAD...REF` shows it:\n",
    );
    for attempt in tried.iter().skip(tried.len().saturating_sub(MOST_TRIED)) {
        let error = shorten(&visible_line(&attempt.error), LONGEST_ERROR);
        let kept = match (&attempt.reference, &attempt.changes) {
            (Some(reference), Some(changes)) => format!("`{reference}` ({changes}): "),
            (Some(reference), None) => format!("`{reference}`: "),
            (None, _) => "nothing was changed: ".to_owned(),
        };
        add(&mut text, format_args!("  - {kept}{error}\n"));
    }
    text
}

fn guidance(guidance: &[String]) -> String {
    if guidance.is_empty() {
        return String::new();
    }
    let said: Vec<&str> = guidance.iter().map(|text| text.trim()).collect();
    format!("# Guidance from the human\n\n{}", said.join("\n\n"))
}

fn contract(story: &Story, remaining: usize) -> String {
    let id = &story.id;
    let promise = if remaining <= 1 {
        "This is the last open story of the backlog. After that line you may add\n\
         `<promise>DONE</promise>` on a line of its own, if the whole backlog is done."
            .to_owned()
    } else {
        format!(
            "Do not print `<promise>DONE</promise>`: it means that the whole backlog is done, and \
             {remaining} stories are open."
        )
    };
    format!(
        r#"# How to finish

When every criterion above is met and the tests pass, print this line, on a line of its own and
outside any code block, and stop:

    Task {id} complete

It must be true. Do not print it to get out of the task, and do not change
`passes` in the backlog yourself: if the story is not complete, say what is missing and stop; the
next iteration goes on from there. You need not commit; if you do, that is fine.

{promise}

If you are stuck (the same error three times, blocked from outside, or you do not know how to go
on) or see a deviation (the story looks wrong or contradictory, the scope is larger than the
criteria, code outside the story must change, a security concern, an architectural decision that
nobody made), do not guess. Print this block, starting at the beginning of a line and outside any
code block, and stop:

```
<escalate type="stuck|deviation">
<summary>one line</summary>
<context>what was attempted, what happened, what was tried</context>
<options>
1. first way forward
2. second way forward
</options>
<question>the question for the human</question>
</escalate>
```"#
    )
}

fn add(text: &mut String, more: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = text.write_fmt(more);
}

#[cfg(test)]
mod tests;
