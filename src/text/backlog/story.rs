//! Reads and checks one story; `relations` checks stories against each other.

use std::collections::HashSet;
use std::num::NonZeroU32;

use crate::model::{BadStoryId, CompletionMarkers, Gate, Story, StoryId, visible_line};
use crate::text::signals::{can_be_a_line, can_be_promised};

use super::diagnostic::{Diagnostics, quoted};
use super::fields::{
    self, FieldSpec, JsonString, KnownFields, ObjectReader, Owner, check_inside, check_keys,
};
use super::json::{self, RawValue};

const A_LINE: &str = "write one line of at most 200 characters, such as \"LOGIN_OK\"; not a quote, comment or \
                      code";
const A_WORD: &str = "write the text of the `<promise>`, such as \"DONE\"";

/// The readable part of a story, enough to check it against the others.
pub struct StoryDraft<'a> {
    pub owner: Owner<'a>,
    pub id: Option<JsonString<'a>>,
    pub depends_on: Vec<JsonString<'a>>,
    /// None if it is invalid, which is reported.
    pub story: Option<Story>,
}

/// `number` counts from 1. None if it is not an object.
pub fn read<'a>(
    found: &mut Diagnostics<'a>,
    known: &mut KnownFields,
    number: usize,
    value: &'a RawValue,
) -> Option<StoryDraft<'a>> {
    let Some(members) = json::members(value) else {
        let kind = json::kind(value);
        let message = format!("story number {number} must be an object, found {kind}");
        found.error(value, message, "write it as `{ \"id\": …, \"title\": …, … }`");
        return None;
    };
    check_keys(found, &members);
    members.iter().for_each(|member| check_inside(found, member.value));
    let id = members.iter().find(|member| member.name == fields::ID.name);
    let id = id.map(|member| member.value);
    let owner = Owner::Story { number, id: id.and_then(json::string) };
    let brace = found.span(value).start;
    let anchor = id.map_or(brace..brace + 1, |id| found.span(id));
    let explained = Vec::new();
    let mut fields = ObjectReader { found, owner, members: &members, known, anchor, explained };
    let draft = read_fields(&mut fields);
    fields.warn_of_misspelled();
    Some(draft)
}

fn read_fields<'a>(fields: &mut ObjectReader<'_, 'a>) -> StoryDraft<'a> {
    // All fields are read, so that all problems are reported at once.
    let id = fields.string(&fields::ID);
    let story_id = id.as_ref().and_then(|id| valid_id(fields, id));
    let title = title(fields);
    let description = fields.string(&fields::DESCRIPTION);
    let criteria = criteria(fields);
    let passes = fields.flag(&fields::PASSES);
    let depends_on = fields.value(&fields::DEPENDS_ON);
    let depends_on = depends_on.and_then(|list| fields.strings(&fields::DEPENDS_ON, list));
    let depends_on = depends_on.unwrap_or_default();
    let skipped = skipped(fields, passes);
    let priority = fields.number(&fields::PRIORITY);
    let verify = fields.optional(&fields::VERIFY, gates);
    let max_attempts = fields.optional(&fields::MAX_ATTEMPTS, max_attempts);
    let markers = markers(fields);
    let story = || {
        Some(Story {
            id: story_id?,
            title: title?,
            description: description?.text.into_owned(),
            criteria: criteria?,
            passes: passes?,
            skipped,
            depends_on: depends_on.iter().filter_map(|on| on.text.parse().ok()).collect(),
            priority,
            verify: verify?,
            max_attempts: max_attempts?,
            markers: markers?,
        })
    };
    StoryDraft { owner: fields.owner.clone(), story: story(), id, depends_on }
}

fn valid_id(fields: &mut ObjectReader<'_, '_>, id: &JsonString<'_>) -> Option<StoryId> {
    let valid = StoryId::try_from(id.text.as_ref()).ok();
    valid.or_else(|| {
        let message = format!("{} is not a valid story id", quoted(&id.text));
        fields.refuse(id.raw, message, &BadStoryId.to_string())
    })
}

fn title(fields: &mut ObjectReader<'_, '_>) -> Option<String> {
    let title = fields.string(&fields::TITLE)?;
    if title.text.trim().is_empty() {
        let message = format!("the title of {} is empty", fields.owner);
        return fields.refuse(title.raw, message, "describe the story in one line");
    }
    Some(title.text.into_owned())
}

fn criteria(fields: &mut ObjectReader<'_, '_>) -> Option<Vec<String>> {
    let list = fields.value(&fields::CRITERIA)?;
    let criteria = fields.strings(&fields::CRITERIA, list)?;
    if criteria.is_empty() {
        let message = format!("{} has no criteria", fields.owner);
        fields.found.warn(list, message, "add at least one criterion that an agent can check");
    }
    if let Some(empty) = criteria.iter().find(|criterion| criterion.text.trim().is_empty()) {
        let message = format!("a criterion of {} is empty", fields.owner);
        fields.found.warn(empty.raw, message, "fill it in, or remove it");
    }
    Some(criteria.into_iter().map(|criterion| criterion.text.into_owned()).collect())
}

fn skipped(fields: &mut ObjectReader<'_, '_>, passes: Option<bool>) -> bool {
    let skipped = fields.flag(&fields::SKIPPED) == Some(true);
    if skipped
        && passes == Some(true)
        && let Some(value) = fields.value(&fields::SKIPPED)
    {
        let message = format!("{} both passes and is skipped", fields.owner);
        fields.found.warn(value, message, "it counts as passed: remove `skipped`");
    }
    skipped
}

fn gates(fields: &mut ObjectReader<'_, '_>, raw: &RawValue) -> Option<Vec<Gate>> {
    let owned = fields.owner.field(fields::VERIFY.name);
    let Some(elements) = json::elements(raw) else {
        let message = format!("{owned} must be an array of commands, found {}", json::kind(raw));
        let help = "write it as a list: `\"verify\": [\"cargo test\"]`";
        return fields.refuse(raw, message, help);
    };
    let gates = elements.into_iter().map(|one| match serde_json::from_str(one.get()) {
        Ok(gate) => Some(gate),
        Err(error) => {
            let reason = visible_line(&json::reason(&error));
            let message = format!("{owned} has an invalid gate: {reason}");
            let help = "write a shell command, or `{ \"run\": …, \"timeout\": \"10m\" }`";
            fields.refuse(one, message, help)
        }
    });
    // All are checked, so that all problems are reported at once.
    gates.collect::<Vec<_>>().into_iter().collect()
}

fn max_attempts(fields: &mut ObjectReader<'_, '_>, raw: &RawValue) -> Option<Option<NonZeroU32>> {
    let count = raw.get().parse().ok().map(Some);
    count.or_else(|| {
        let owned = fields.owner.field(fields::MAX_ATTEMPTS.name);
        let message = format!("{owned} must be a number of at least 1");
        fields.refuse(raw, message, "write a number such as `5`, or remove the field")
    })
}

fn markers(fields: &mut ObjectReader<'_, '_>) -> Option<CompletionMarkers> {
    // All are checked, so that all problems are reported at once.
    let promise = fields.optional(&fields::PROMISE, promise);
    let signals = marker_lines(fields, &fields::SIGNALS);
    let stages = marker_lines(fields, &fields::STAGES);
    Some(CompletionMarkers { promise: promise?, signals: signals?, stages: stages? })
}

fn promise<'a>(fields: &mut ObjectReader<'_, 'a>, raw: &'a RawValue) -> Option<Option<String>> {
    let promise = fields.string_in(&fields::PROMISE, raw)?;
    if !can_be_promised(&promise.text) {
        return fields.refuse_entry(&fields::PROMISE, raw, A_WORD);
    }
    Some(Some(promise.text.into_owned()))
}

fn marker_lines(fields: &mut ObjectReader<'_, '_>, field: &FieldSpec) -> Option<Vec<String>> {
    fields.optional(field, |fields, raw| {
        let lines = fields.strings(field, raw)?;
        if let Some(bad) = lines.iter().find(|line| !can_be_a_line(&line.text)) {
            return fields.refuse_entry(field, bad.raw, A_LINE);
        }
        let mut seen = HashSet::new();
        if let Some(again) = lines.iter().find(|line| !seen.insert(line.text.trim())) {
            return fields.refuse_entry(field, again.raw, "remove the duplicate");
        }
        Some(lines.iter().map(|line| line.text.trim().to_owned()).collect())
    })
}
