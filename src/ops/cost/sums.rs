//! Attempts, summed up by what is asked for.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Map, Value, json};

use crate::decide::efficiency::Figures;
use crate::model::{Usage, Usd};
use crate::store::AttemptCosts;

/// What comes of an attempt that was for nothing.
const FAILED: [&str; 3] = ["failed", "rejected", "prompt_too_long"];
const UNKNOWN: &str = "unknown";

#[derive(Clone, Debug, PartialEq)]
pub struct CostGroup {
    pub key: CostKey,
    pub sums: CostSums,
}

#[derive(Clone, Debug, PartialEq)]
pub enum CostKey {
    Story { backlog: String, story: String, title: String },
    Day(String),
    Model(String),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct CostSums {
    pub iterations: u32,
    /// How many of them did not say what they cost.
    pub assumed: u32,
    pub cost: Usd,
    pub failed: Usd,
    pub closed: u32,
    pub elapsed_ms: u64,
    pub usage: Usage,
}

impl CostSums {
    pub fn of(entries: &[AttemptCosts]) -> Self {
        let mut sums = Self::default();
        entries.iter().for_each(|entry| sums.add(entry));
        sums
    }

    fn add(&mut self, entry: &AttemptCosts) {
        let is_over = entry.result != "running";
        self.iterations += 1;
        // A model's part is never the whole.
        let is_stated = !entry.model.is_empty() || entry.stated == Some(entry.counted);
        self.assumed += u32::from(is_over && !is_stated);
        self.cost += entry.counted;
        if FAILED.contains(&entry.result.as_str()) {
            self.failed += entry.counted;
        }
        self.closed += u32::from(entry.result == "closed");
        self.elapsed_ms += entry.elapsed_ms;
        self.usage.add(&entry.usage);
    }

    pub fn join(&mut self, other: &Self) {
        self.iterations += other.iterations;
        self.assumed += other.assumed;
        self.cost += other.cost;
        self.failed += other.failed;
        self.closed += other.closed;
        self.elapsed_ms += other.elapsed_ms;
        self.usage.add(&other.usage);
    }

    pub fn figures(&self) -> Figures {
        Figures {
            usage: self.usage.clone(),
            cost: self.cost,
            failed: self.failed,
            closed: self.closed,
        }
    }

    pub fn as_json(&self) -> Value {
        self.fields(true).into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// `of_attempts`: turns and the like are an attempt's, not a model's.
    pub fn fields(&self, of_attempts: bool) -> Vec<(&'static str, Value)> {
        let usage = &self.usage;
        let mut fields = vec![
            ("iterations", json!(self.iterations)),
            ("cost_usd", json!(self.cost)),
            ("input_tokens", json!(usage.input_tokens)),
            ("output_tokens", json!(usage.output_tokens)),
            ("cache_read_tokens", json!(usage.cache_read_tokens)),
            ("cache_write_tokens", json!(usage.cache_write_tokens)),
        ];
        if of_attempts {
            fields.extend([
                ("assumed", json!(self.assumed)),
                ("failed_usd", json!(self.failed)),
                ("closed", json!(self.closed)),
                ("turns", json!(usage.turns)),
                ("tool_calls", json!(usage.tool_calls)),
                ("agent_ms", json!(self.elapsed_ms)),
            ]);
        }
        fields
    }
}

impl CostGroup {
    pub fn fields(&self) -> Vec<(&'static str, Value)> {
        let mut fields = match &self.key {
            CostKey::Story { backlog, story, title } => {
                vec![("backlog", json!(backlog)), ("story", json!(story)), ("title", json!(title))]
            }
            CostKey::Day(day) => vec![("day", json!(day))],
            CostKey::Model(model) => vec![("model", json!(model))],
        };
        fields.extend(self.sums.fields(!matches!(self.key, CostKey::Model(_))));
        fields
    }

    pub fn as_json(&self) -> Value {
        let fields = self.fields().into_iter().map(|(name, value)| (name.to_owned(), value));
        Value::Object(fields.collect::<Map<_, _>>())
    }
}

/// In the order in which they were first tried, with their latest titles.
pub fn by_story(entries: &[AttemptCosts]) -> Vec<CostGroup> {
    let mut groups: Vec<CostGroup> = Vec::new();
    for entry in entries {
        let is_it = |group: &&mut CostGroup| match &group.key {
            CostKey::Story { backlog, story, .. } => {
                *backlog == entry.backlog && *story == entry.story
            }
            _ => false,
        };
        let key = CostKey::Story {
            backlog: entry.backlog.clone(),
            story: entry.story.clone(),
            title: entry.title.clone(),
        };
        match groups.iter_mut().find(is_it) {
            Some(group) => {
                group.key = key;
                group.sums.add(entry);
            }
            None => groups.push(CostGroup { key, sums: CostSums::of(std::slice::from_ref(entry)) }),
        }
    }
    groups
}

/// Oldest first.
pub fn by_day(entries: &[AttemptCosts], zone: &TimeZone) -> Vec<CostGroup> {
    let day = |entry: &AttemptCosts| {
        let at = Timestamp::from_millisecond(entry.at).unwrap_or_default();
        CostKey::Day(at.to_zoned(zone.clone()).strftime("%Y-%m-%d").to_string())
    };
    let mut groups = by_key(entries, day);
    groups.sort_by(|a, b| name(a).cmp(name(b)));
    groups
}

/// The dearest first.
pub fn by_model(entries: &[AttemptCosts]) -> Vec<CostGroup> {
    let model = |entry: &AttemptCosts| {
        let name = if entry.model.is_empty() { UNKNOWN } else { &entry.model };
        CostKey::Model(name.to_owned())
    };
    let mut groups = by_key(entries, model);
    groups.sort_by(|a, b| b.sums.cost.cmp(&a.sums.cost).then_with(|| name(a).cmp(name(b))));
    groups
}

fn name(group: &CostGroup) -> &str {
    match &group.key {
        CostKey::Day(name) | CostKey::Model(name) | CostKey::Story { story: name, .. } => name,
    }
}

fn by_key(entries: &[AttemptCosts], key: impl Fn(&AttemptCosts) -> CostKey) -> Vec<CostGroup> {
    let mut groups: Vec<CostGroup> = Vec::new();
    for entry in entries {
        let key = key(entry);
        match groups.iter_mut().find(|group| group.key == key) {
            Some(group) => group.sums.add(entry),
            None => groups.push(CostGroup { key, sums: CostSums::of(std::slice::from_ref(entry)) }),
        }
    }
    groups
}

#[cfg(test)]
mod tests;
