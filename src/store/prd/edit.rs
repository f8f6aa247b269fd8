//! Changes marks in the text of a backlog.
//!
//! Every other byte stays: order, spacing, spelling of numbers and escapes, unknown fields, line
//! endings, BOM. So the text is cut and joined, and never serialized again.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};

use crate::model::StoryId;
use crate::text::backlog::json::{self, Member, Members, RawValue};
use crate::text::backlog::{BOM, span};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    Passes(bool),
    Skipped(bool),
}

#[derive(Debug, thiserror::Error)]
pub enum EditError {
    #[error("cannot parse the backlog: {0}")]
    NotABacklog(#[from] serde_json::Error),
    #[error("no story `{0}` in the backlog; was it renamed or removed?")]
    NoSuchStory(StoryId),
    #[error("story `{0}` is in the backlog twice; change the id of one of them")]
    Twice(StoryId),
    #[error("story `{story}` needs one field `{field}` with `true` or `false`")]
    BadField { story: StoryId, field: &'static str },
}

pub type EditResult<T> = Result<T, EditError>;

const STORIES: &str = "userStories";
const PASSES: &str = "passes";
const SKIPPED: &str = "skipped";

/// The text with the mark set. A missing `skipped` is inserted after `passes`, in its style.
pub fn set_mark(text: &str, story: &StoryId, mark: Mark) -> EditResult<String> {
    let Stories::<Members<'_>>(stories) = serde_json::from_str(without_bom(text))?;
    let mut found = stories.iter().filter(|Members(members)| has_id(members, story));
    let Members(members) = found.next().ok_or_else(|| EditError::NoSuchStory(story.clone()))?;
    if found.next().is_some() {
        return Err(EditError::Twice(story.clone()));
    }
    let edit = edit_for(text, members, story, mark)?;
    Ok(edit.map_or_else(|| text.to_owned(), |edit| apply(text, &[edit])))
}

/// A story's position in the backlog, and its id.
pub type StoryAt<'a> = (usize, &'a StoryId);

/// Other bytes for a part of a text.
#[derive(Clone, Debug)]
pub(super) struct TextEdit {
    pub at: Range<usize>,
    pub new: Cow<'static, str>,
}

/// In one pass. The edits are in the order of the text and do not overlap.
pub(super) fn apply(text: &str, edits: &[TextEdit]) -> String {
    let more: usize = edits.iter().map(|edit| edit.new.len()).sum();
    let mut result = String::with_capacity(text.len() + more);
    let mut done = 0;
    for edit in edits {
        result.push_str(text.get(done..edit.at.start).unwrap_or_default());
        result.push_str(&edit.new);
        done = edit.at.end;
    }
    result.push_str(text.get(done..).unwrap_or_default());
    result
}

/// Where each story is in the text, so that a mark is changed without reading the other stories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StorySpans(Arc<[Range<usize>]>);

impl StorySpans {
    pub fn of(text: &str) -> EditResult<Self> {
        let Stories::<&RawValue>(stories) = serde_json::from_str(without_bom(text))?;
        Ok(Self(stories.into_iter().map(|story| span(text, story)).collect()))
    }

    /// The edits that set these marks of the story at the position, in the order of the text.
    pub fn edits(
        &self,
        text: &str,
        (position, id): StoryAt<'_>,
        marks: &[Mark],
    ) -> EditResult<Vec<TextEdit>> {
        let gone = || EditError::NoSuchStory(id.clone());
        let span = self.0.get(position).ok_or_else(gone)?;
        let object = text.get(span.clone()).ok_or_else(gone)?;
        let Members(members) = serde_json::from_str(object)?;
        if !has_id(&members, id) {
            return Err(gone());
        }
        let mut edits = Vec::with_capacity(marks.len());
        for mark in marks {
            if let Some(edit) = edit_for(object, &members, id, *mark)? {
                let at = span.start + edit.at.start..span.start + edit.at.end;
                edits.push(TextEdit { at, ..edit });
            }
        }
        edits.sort_by_key(|edit| (edit.at.start, edit.at.end));
        Ok(edits)
    }

    /// Where the stories are after the edits, which are inside of them.
    pub fn after(&self, edits: &[TextEdit]) -> Self {
        let (mut rest, mut added, mut removed) = (edits.iter().peekable(), 0, 0);
        let moved = self.0.iter().map(|span| {
            let start = span.start + added - removed;
            while let Some(edit) = rest.next_if(|edit| edit.at.start < span.end) {
                added += edit.new.len();
                removed += edit.at.len();
            }
            start..span.end + added - removed
        });
        Self(moved.collect())
    }
}

fn without_bom(text: &str) -> &str {
    text.strip_prefix(BOM).unwrap_or(text)
}

/// None: the story is not skipped, and has no `skipped` to say so.
fn edit_for(
    text: &str,
    members: &[Member<'_>],
    story: &StoryId,
    mark: Mark,
) -> EditResult<Option<TextEdit>> {
    let missing = || EditError::BadField { story: story.clone(), field: PASSES };
    let passes = flag(members, story, PASSES)?.ok_or_else(missing)?;
    Ok(match mark {
        Mark::Passes(value) => with_value(text, members, passes, value),
        Mark::Skipped(value) => match flag(members, story, SKIPPED)? {
            Some(skipped) => with_value(text, members, skipped, value),
            None if value => with_skipped_after(text, members, passes),
            None => None,
        },
    })
}

fn has_id(members: &[Member<'_>], id: &StoryId) -> bool {
    let own = members.iter().find(|member| member.name == "id");
    own.and_then(|own| json::string(own.value)).is_some_and(|own| own == id.as_str())
}

/// Which member it is, if there is one.
fn flag(members: &[Member<'_>], story: &StoryId, field: &'static str) -> EditResult<Option<usize>> {
    let mut found = members.iter().enumerate().filter(|(_, member)| member.name == field);
    let Some((at, member)) = found.next() else { return Ok(None) };
    let value = member.value.get();
    let is_flag = matches!(value, "true" | "false") || (value == "null" && field == SKIPPED);
    let bad = || EditError::BadField { story: story.clone(), field };
    if is_flag && found.next().is_none() { Ok(Some(at)) } else { Err(bad()) }
}

fn with_value(text: &str, members: &[Member<'_>], at: usize, value: bool) -> Option<TextEdit> {
    let at = span(text, members.get(at)?.value);
    Some(TextEdit { at, new: if value { "true" } else { "false" }.into() })
}

/// Separator and colon are copied from those of `passes`.
fn with_skipped_after(text: &str, members: &[Member<'_>], passes: usize) -> Option<TextEdit> {
    let own = members.get(passes)?;
    let (key, value) = (span(text, own.key), span(text, own.value));
    let colon = text.get(key.end..value.start).unwrap_or(": ");
    let separator = separator_near(text, members, passes).unwrap_or(", ");
    let new = format!("{separator}\"{SKIPPED}\"{colon}true");
    Some(TextEdit { at: value.end..value.end, new: new.into() })
}

/// The comma and the space before a member, or after it if it is the first.
fn separator_near<'t>(text: &'t str, members: &[Member<'_>], at: usize) -> Option<&'t str> {
    let second = at.max(1);
    let before = span(text, members.get(second - 1)?.value);
    let after = span(text, members.get(second)?.key);
    text.get(before.end..after.start)
}

/// The stories; the rest of the file is skipped.
struct Stories<T>(Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Stories<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FileVisitor(PhantomData))
    }
}

struct FileVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for FileVisitor<T> {
    type Value = Stories<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with `userStories`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut stories = None;
        while let Some(key) = map.next_key::<&RawValue>()? {
            if json::name_of(key) != STORIES {
                map.next_value::<IgnoredAny>()?;
            } else if stories.replace(map.next_value()?).is_some() {
                return Err(A::Error::duplicate_field(STORIES));
            }
        }
        stories.map(Stories).ok_or_else(|| A::Error::missing_field(STORIES))
    }
}
