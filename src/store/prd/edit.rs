//! Changes one mark of one story in the text of a backlog.
//!
//! Every other byte stays: order, spacing, spelling of numbers and escapes,
//! unknown fields, line endings, BOM. So the text is cut and joined, never
//! written anew. It is walked once, because it is done after every story.

use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};

use crate::core::backlog::position::BOM;
use crate::core::backlog::raw::{self, Member, Members, RawValue};
use crate::core::id::StoryId;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    Passes(bool),
    Skipped(bool),
}

#[derive(Debug, thiserror::Error)]
pub enum EditError {
    #[error("the backlog cannot be read: {0}; mend the file")]
    NotABacklog(#[from] serde_json::Error),
    #[error("there is no story `{0}` in the backlog; was it renamed or removed?")]
    NoSuchStory(StoryId),
    #[error("the story `{0}` is in the backlog twice; give one of the two another id")]
    Twice(StoryId),
    #[error("`{field}` of story `{story}` must be there once, as `true` or `false`")]
    BadField { story: StoryId, field: &'static str },
}

const STORIES: &str = "userStories";
const PASSES: &str = "passes";
const SKIPPED: &str = "skipped";

/// The text with the mark set. A `skipped` that is not there is put after `passes`, in its style.
pub fn set_mark(text: &str, story: &StoryId, mark: Mark) -> Result<String, EditError> {
    let json = text.strip_prefix(BOM).unwrap_or(text);
    let Stories(stories) = serde_json::from_str(json)?;
    let members = find(&stories, story)?;
    let bad = |field| EditError::BadField { story: story.clone(), field };
    let passes = flag(members, PASSES).and_then(|found| found.ok_or(BadFlag));
    let passes = passes.map_err(|BadFlag| bad(PASSES))?;
    match mark {
        Mark::Passes(value) => Ok(with_value(text, members, passes, value)),
        Mark::Skipped(value) => match flag(members, SKIPPED).map_err(|BadFlag| bad(SKIPPED))? {
            Some(skipped) => Ok(with_value(text, members, skipped, value)),
            None if value => Ok(with_skipped_after(text, members, passes)),
            None => Ok(text.to_owned()),
        },
    }
}

fn find<'s, 'a>(stories: &'s [Members<'a>], id: &StoryId) -> Result<&'s [Member<'a>], EditError> {
    let mut found = stories.iter().filter(|Members(members)| has_id(members, id));
    let Members(members) = found.next().ok_or_else(|| EditError::NoSuchStory(id.clone()))?;
    match found.next() {
        Some(_) => Err(EditError::Twice(id.clone())),
        None => Ok(members),
    }
}

fn has_id(members: &[Member<'_>], id: &StoryId) -> bool {
    let own = members.iter().find(|member| member.name == "id");
    own.and_then(|own| raw::string(own.value)).is_some_and(|own| own == id.as_str())
}

/// There more than once, or neither `true` nor `false`.
struct BadFlag;

/// Which member it is, if there is one.
fn flag(members: &[Member<'_>], name: &str) -> Result<Option<usize>, BadFlag> {
    let mut found = members.iter().enumerate().filter(|(_, member)| member.name == name);
    let Some((at, member)) = found.next() else {
        return Ok(None);
    };
    let is_flag = match member.value.get() {
        "true" | "false" => true,
        "null" => name == SKIPPED,
        _ => false,
    };
    if is_flag && found.next().is_none() { Ok(Some(at)) } else { Err(BadFlag) }
}

fn with_value(text: &str, members: &[Member<'_>], at: usize, value: bool) -> String {
    let old = members.get(at).map_or(0..0, |member| raw::span(text, member.value));
    splice(text, old, if value { "true" } else { "false" })
}

/// What stands between two members, and between name and value, is copied from round `passes`.
fn with_skipped_after(text: &str, members: &[Member<'_>], passes: usize) -> String {
    let Some(own) = members.get(passes) else {
        return text.to_owned();
    };
    let (key, value) = (raw::span(text, own.key), raw::span(text, own.value));
    let colon = text.get(key.end..value.start).unwrap_or(": ");
    let separator = separator_near(text, members, passes).unwrap_or(", ");
    let end = value.end;
    splice(text, end..end, &format!("{separator}\"{SKIPPED}\"{colon}true"))
}

/// The comma and the space before a member, or after it if it is the first.
fn separator_near<'t>(text: &'t str, members: &[Member<'_>], at: usize) -> Option<&'t str> {
    let second = at.max(1);
    let before = raw::span(text, members.get(second - 1)?.value);
    let after = raw::span(text, members.get(second)?.key);
    text.get(before.end..after.start)
}

fn splice(text: &str, old: Range<usize>, new: &str) -> String {
    let before = text.get(..old.start).unwrap_or_default();
    let after = text.get(old.end..).unwrap_or_default();
    [before, new, after].concat()
}

/// The members of each story; the rest of the file is only walked over.
struct Stories<'a>(Vec<Members<'a>>);

impl<'de: 'a, 'a> Deserialize<'de> for Stories<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FileVisitor)
    }
}

struct FileVisitor;

impl<'de> Visitor<'de> for FileVisitor {
    type Value = Stories<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with `userStories`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut stories = None;
        while let Some(key) = map.next_key::<&RawValue>()? {
            if raw::name_of(key) != STORIES {
                map.next_value::<IgnoredAny>()?;
            } else if stories.replace(map.next_value()?).is_some() {
                return Err(A::Error::duplicate_field(STORIES));
            }
        }
        stories.map(Stories).ok_or_else(|| A::Error::missing_field(STORIES))
    }
}
