//! Backlogs for tests.

use std::fmt::Write;

/// A backlog in the making; stories are called US-001, US-002, …
#[derive(Default)]
pub struct Prd {
    stories: Vec<String>,
}

impl Prd {
    pub fn stories(count: usize) -> Self {
        (0..count).fold(Self::default(), |prd, _| prd.story(""))
    }

    /// `more` are further fields, such as `"depends_on": ["US-001"]`.
    pub fn story(mut self, more: &str) -> Self {
        let number = self.stories.len() + 1;
        let mut story = String::new();
        write!(
            story,
            r#"    {{
      "id": "US-{number:03}",
      "title": "Story {number}",
      "description": "What story {number} is about.",
      "criteria": ["it is done"],
      "passes": false"#
        )
        .unwrap();
        if !more.is_empty() {
            write!(story, ",\n      {more}").unwrap();
        }
        story.push_str("\n    }");
        self.stories.push(story);
        self
    }

    pub fn text(&self) -> String {
        format!(
            "{{\n  \"project\": \"demo\",\n  \"description\": \"A demo.\",\n  \"userStories\": [\n{}\n  ]\n}}\n",
            self.stories.join(",\n")
        )
    }
}
