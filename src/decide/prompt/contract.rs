//! The contract: how an agent claims its story, escalates and hands off.

use crate::state::StoryState;

use super::Briefing;

/// The same for every story, except for the placeholders.
pub const TEMPLATE: &str = r#"# How to finish

{claim}

It must be true. Do not print it to get out of the story, and do not change `passes` in the backlog:
if the story is not complete, say what is missing and stop; the next iteration continues from there.
You may commit, but you need not.

{promise}

If you are stuck (the same error three times, blocked from outside, or you do not know how to
continue) or see a deviation (the story looks wrong or contradictory, the scope is larger than the
criteria, code outside the story must change, a security concern, a missing architectural decision),
do not guess. Print this block, starting at the beginning of a line and outside any code block, and
stop:

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

The next agent starts without your context. Keep notes in `.ralph/scratchpad.md`: its end is in the
next prompt. If you stop before the story is complete, or your context fills up, end with this
block, starting at the beginning of a line and outside any code block; leave out fields that do not
apply:

```
<handoff>
<phase>planning, implementing, testing, …</phase>
<completed>what is done</completed>
<pending>what is open</pending>
<blocked>what is blocked, and why</blocked>
<decisions>what you decided, and why</decisions>
<assumptions>what you took for granted</assumptions>
<constraints>what must stay as it is</constraints>
<next_step>what to do first</next_step>
</handoff>
```"#;

impl Briefing<'_> {
    pub(super) fn contract(&self, known: &StoryState) -> String {
        let has_stages = !self.markers.stages.is_empty();
        let claim = if has_stages { self.claim_by_stages(known) } else { self.claim() };
        TEMPLATE.replace("{claim}", &claim).replace("{promise}", &self.promise())
    }

    fn claim(&self) -> String {
        let mut text = format!(
            "When every criterion above is met and the tests pass, print this line, on a line of its \
             own and\noutside any code block, and stop:\n\n    Task {} complete",
            self.story.id
        );
        let promise_of = |word: &String| format!("<promise>{}</promise>", word.trim());
        let promise = self.markers.promise.as_ref().map(promise_of);
        let others: Vec<String> =
            promise.into_iter().chain(self.markers.signals.iter().cloned()).collect();
        if !others.is_empty() {
            text.push_str("\n\nAny of these lines claims the story too:\n\n");
            text.push_str(&indented(&others));
        }
        text
    }

    fn claim_by_stages(&self, known: &StoryState) -> String {
        let (reached, left) = self.stages(known);
        let reached: Vec<String> = reached.iter().map(|stage| format!("`{stage}`")).collect();
        let before = match reached.as_slice() {
            [] => String::new(),
            names => {
                format!("\n\nReached before, not to be printed again: {}.", names.join(", "))
            }
        };
        format!(
            "This story has stages. When you have reached one, print its line, on a line of its own \
             and\noutside any code block, in this order:\n\n{}{before}\n\nThe last line claims that \
             every criterion above is met and the tests pass: print it and stop. No\nother line claims \
             the story.",
            indented(left)
        )
    }

    fn promise(&self) -> String {
        let own = self.markers.promise.as_deref().map(str::trim);
        let is_own = own.is_some_and(|word| word.eq_ignore_ascii_case("done"));
        if is_own || !self.markers.stages.is_empty() {
            return "Work on this story only; claim nothing about the other stories.".to_owned();
        }
        let remaining = self.backlog.remaining();
        if remaining <= 1 {
            return "This is the last open story of the backlog. After that line you may add\n\
                    `<promise>DONE</promise>` on a line of its own, if the whole backlog is done."
                .to_owned();
        }
        format!(
            "Do not print `<promise>DONE</promise>`: it means that the whole backlog is done, and {remaining} \
             stories are open."
        )
    }
}

fn indented(lines: &[String]) -> String {
    lines.iter().map(|line| format!("    {}", line.trim())).collect::<Vec<_>>().join("\n")
}
