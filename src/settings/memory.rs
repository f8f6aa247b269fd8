//! `[memory]`: how much of what earlier iterations taught goes into a prompt.

use serde::Deserialize;

use super::plan::{Origin, PlanError};
use crate::core::memory::{Bounds, LONGEST_KEPT, MOST_KEPT};

const MOST_IN_ALL: u64 = 100_000;

/// The `[memory]` table of ralph.toml.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MemorySettings {
    /// Entries of each kind.
    pub outcomes: Option<i64>,
    pub errors: Option<i64>,
    pub worked: Option<i64>,
    /// Characters of one entry.
    pub entry: Option<i64>,
    /// Characters of all of them.
    pub total: Option<i64>,
}

pub fn limits(settings: &MemorySettings) -> Result<Bounds, PlanError> {
    let default = Bounds::default();
    let few = "a number from 0 to 20";
    let count = |name, value, default| bounded(name, value, default, MOST_KEPT as u64, few);
    Ok(Bounds {
        outcomes: count("memory.outcomes", settings.outcomes, default.outcomes)?,
        errors: count("memory.errors", settings.errors, default.errors)?,
        worked: count("memory.worked", settings.worked, default.worked)?,
        entry: bounded(
            "memory.entry",
            settings.entry,
            default.entry,
            LONGEST_KEPT as u64,
            "a number of characters from 0 to 2000",
        )?,
        total: bounded(
            "memory.total",
            settings.total,
            default.total,
            MOST_IN_ALL,
            "a number of characters from 0 to 100000",
        )?,
    })
}

fn bounded(
    name: &'static str,
    value: Option<i64>,
    default: usize,
    most: u64,
    expected: &'static str,
) -> Result<usize, PlanError> {
    let Some(value) = value else { return Ok(default) };
    let in_bounds = u64::try_from(value).ok().filter(|number| *number <= most);
    let number = in_bounds.and_then(|number| usize::try_from(number).ok());
    number.ok_or(PlanError::Bad { origin: Origin::File(name), value: value.to_string(), expected })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_is_the_humans_within_its_bounds() {
        assert_eq!(limits(&MemorySettings::default()).unwrap(), Bounds::default());
        let chosen = MemorySettings { errors: Some(0), total: Some(900), ..Default::default() };
        let expected = Bounds { errors: 0, total: 900, ..Bounds::default() };
        assert_eq!(limits(&chosen).unwrap(), expected);
        for (wrong, told) in [
            (MemorySettings { outcomes: Some(-1), ..Default::default() }, "`memory.outcomes`"),
            (MemorySettings { worked: Some(21), ..Default::default() }, "`memory.worked`"),
            (MemorySettings { entry: Some(2001), ..Default::default() }, "`memory.entry`"),
            (MemorySettings { total: Some(100_001), ..Default::default() }, "`memory.total`"),
        ] {
            let error = limits(&wrong).unwrap_err();
            assert!(!error.is_usage() && error.to_string().starts_with(told), "{error}");
        }
    }
}
