//! How an agent finishes: the part of the prompt that ralph relies on.

use crate::model::{CompletionMarkers, Story};

/// The same for every story, except for the placeholders.
pub const TEMPLATE: &str = r#"# How to finish

{claim}

It must be true. Do not print it to get out of the task, and do not change
`passes` in the backlog yourself: if the story is not complete, say what is missing and stop; the
next iteration continues from there. You need not commit; if you do, that is fine.

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
```

The next iteration knows nothing of what you know. Keep notes in `.ralph/scratchpad.md`: its end is
in the next prompt. When you stop before the story is complete, or your context fills up, end with
this block, starting at the beginning of a line and outside any code block; leave out what there is
nothing to say about:

```
<handoff>
<phase>planning, implementing, testing or what it is</phase>
<completed>what is done</completed>
<pending>what is open</pending>
<blocked>what is blocked, and why</blocked>
<decisions>what you decided, and why</decisions>
<assumptions>what you took for granted</assumptions>
<constraints>what must stay as it is</constraints>
<next_step>what to do first</next_step>
</handoff>
```"#;

/// What the contract depends on besides the story.
pub struct Contract<'a> {
    pub signs: &'a CompletionMarkers,
    /// How many of its stages are reached.
    pub reached: usize,
}

impl Contract<'_> {
    pub fn text(&self, story: &Story, remaining: usize) -> String {
        TEMPLATE
            .replace("{claim}", &self.claim(story))
            .replace("{promise}", &self.promise(remaining))
    }

    fn claim(&self, story: &Story) -> String {
        if !self.signs.stages.is_empty() {
            return self.stages();
        }
        let mut text = format!(
            "When every criterion above is met and the tests pass, print this line, on a line of its \
             own and\noutside any code block, and stop:\n\n    Task {} complete",
            story.id
        );
        let promise = self.signs.promise.as_deref().map(promise_of);
        let others: Vec<String> =
            promise.into_iter().chain(self.signs.signals.iter().cloned()).collect();
        if !others.is_empty() {
            text.push_str("\n\nAny of these says the same, in the same way:\n\n");
            text.push_str(&indented(&others));
        }
        text
    }

    fn stages(&self) -> String {
        let (reached, left) =
            self.signs.stages.split_at_checked(self.reached).unwrap_or((&[], &self.signs.stages));
        let mut text =
            "This story has stages. When you have reached one, print its line, on a line \
                        of its own and\noutside any code block, in this order:\n\n"
                .to_owned();
        text.push_str(&indented(left));
        if !reached.is_empty() {
            let names: Vec<String> = reached.iter().map(|stage| format!("`{stage}`")).collect();
            text.push_str("\n\nReached before, not to be printed again: ");
            text.push_str(&names.join(", "));
            text.push('.');
        }
        text.push_str(
            "\n\nThe last one says that every criterion above is met and the tests pass: print it \
             and stop. Nothing\nelse says so.",
        );
        text
    }

    fn promise(&self, remaining: usize) -> String {
        let own = self.signs.promise.as_deref().map(str::trim);
        let is_own = own.is_some_and(|word| word.eq_ignore_ascii_case("done"));
        if is_own || !self.signs.stages.is_empty() {
            return "One story at a time: say nothing about the rest of the backlog.".to_owned();
        }
        if remaining <= 1 {
            return "This is the last open story of the backlog. After that line you may add\n\
                    `<promise>DONE</promise>` on a line of its own, if the whole backlog is done."
                .to_owned();
        }
        format!(
            "Do not print `<promise>DONE</promise>`: it means that the whole backlog is done, and \
             {remaining} stories are open."
        )
    }
}

fn promise_of(word: &str) -> String {
    format!("<promise>{}</promise>", word.trim())
}

fn indented(lines: &[String]) -> String {
    lines.iter().map(|line| format!("    {}", line.trim())).collect::<Vec<_>>().join("\n")
}
