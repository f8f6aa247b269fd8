//! The costs of attempts, summed up by story, day or model.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use crate::decide::figures::Figures;
use crate::store::AttemptCosts;

/// Results of attempts that achieved nothing.
const FAILED: [&str; 3] = ["failed", "rejected", "prompt_too_long"];
const UNKNOWN: &str = "unknown";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostGrouping {
    Story,
    Day,
    Model,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CostGroup {
    pub by: CostGrouping,
    /// The story's; else empty.
    pub backlog: String,
    /// The story's id, the day or the model.
    pub name: String,
    /// The story's latest one; else empty.
    pub title: String,
    pub sums: CostSums,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct CostSums {
    pub iterations: u32,
    /// How many of them did not report their cost.
    pub assumed: u32,
    pub elapsed_ms: u64,
    pub figures: Figures,
}

impl CostSums {
    pub fn of(entries: &[AttemptCosts]) -> Self {
        let mut sums = Self::default();
        entries.iter().for_each(|entry| sums.add(entry));
        sums
    }

    fn add(&mut self, entry: &AttemptCosts) {
        self.iterations += 1;
        // A model's part is never the whole.
        let is_stated = !entry.model.is_empty() || entry.stated == Some(entry.counted);
        self.assumed += u32::from(entry.result != "running" && !is_stated);
        self.elapsed_ms += entry.elapsed_ms;
        self.figures.usage.add(&entry.usage);
        self.figures.cost += entry.counted;
        if FAILED.contains(&entry.result.as_str()) {
            self.figures.failed += entry.counted;
        }
        self.figures.closed += u32::from(entry.result == "closed");
    }

    pub fn as_json(&self) -> Value {
        self.fields(true).into_iter().collect()
    }

    /// `of_attempts`: turns and the like are an attempt's, not a model's.
    fn fields(&self, of_attempts: bool) -> Vec<(&'static str, Value)> {
        let (figures, usage) = (&self.figures, &self.figures.usage);
        let mut fields = vec![
            ("iterations", json!(self.iterations)),
            ("cost_usd", json!(figures.cost)),
            ("input_tokens", json!(usage.input_tokens)),
            ("output_tokens", json!(usage.output_tokens)),
            ("cache_read_tokens", json!(usage.cache_read_tokens)),
            ("cache_write_tokens", json!(usage.cache_write_tokens)),
        ];
        if of_attempts {
            fields.extend([
                ("assumed", json!(self.assumed)),
                ("failed_usd", json!(figures.failed)),
                ("closed", json!(figures.closed)),
                ("turns", json!(usage.turns)),
                ("tool_calls", json!(usage.tool_calls)),
                ("agent_ms", json!(self.elapsed_ms)),
            ]);
        }
        fields
    }
}

impl CostGroup {
    /// In the order of the columns.
    pub fn fields(&self) -> Vec<(&'static str, Value)> {
        let name = json!(self.name);
        let mut fields = match self.by {
            CostGrouping::Story => vec![
                ("backlog", json!(self.backlog)),
                ("story", name),
                ("title", json!(self.title)),
            ],
            CostGrouping::Day => vec![("day", name)],
            CostGrouping::Model => vec![("model", name)],
        };
        fields.extend(self.sums.fields(self.by != CostGrouping::Model));
        fields
    }

    pub fn as_json(&self) -> Value {
        self.fields().into_iter().collect()
    }
}

/// Stories in the order of their first attempts, days oldest first, the most expensive model
/// first. `zone` decides which day it is.
pub fn grouped(entries: &[AttemptCosts], by: CostGrouping, zone: &TimeZone) -> Vec<CostGroup> {
    let mut groups: Vec<CostGroup> = Vec::new();
    for entry in entries {
        let (backlog, name, title) = match by {
            CostGrouping::Story => (&*entry.backlog, entry.story.clone(), &*entry.title),
            CostGrouping::Day => ("", day(entry.at, zone), ""),
            CostGrouping::Model if entry.model.is_empty() => ("", UNKNOWN.to_owned(), ""),
            CostGrouping::Model => ("", entry.model.clone(), ""),
        };
        let title = title.to_owned();
        match groups.iter_mut().find(|group| group.backlog == backlog && group.name == name) {
            Some(group) => {
                group.title = title;
                group.sums.add(entry);
            }
            None => {
                let sums = CostSums::of(std::slice::from_ref(entry));
                groups.push(CostGroup { by, backlog: backlog.to_owned(), name, title, sums });
            }
        }
    }
    let cost = |group: &CostGroup| group.sums.figures.cost;
    match by {
        CostGrouping::Story => {}
        CostGrouping::Day => groups.sort_by(|a, b| a.name.cmp(&b.name)),
        CostGrouping::Model => {
            groups.sort_by(|a, b| cost(b).cmp(&cost(a)).then_with(|| a.name.cmp(&b.name)));
        }
    }
    groups
}

fn day(at: i64, zone: &TimeZone) -> String {
    let at = Timestamp::from_millisecond(at).unwrap_or_default();
    at.to_zoned(zone.clone()).strftime("%Y-%m-%d").to_string()
}

#[cfg(test)]
mod tests;
