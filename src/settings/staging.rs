//! The settings of what may become a part of a commit.

use super::file::SettingsFile;
use super::plan::{Layered, Origin, PlanError};
use super::size;
use crate::core::staging::{Pattern, Rules};
use crate::core::text::visible_line;

const A_SIZE: &str = "a size such as `10MB`, or `none`";
const A_NUMBER: &str = "a number, or `none`";
const A_NAME: &str = "the name of a file or folder, with `*` for any characters";

pub fn rules(file: &SettingsFile) -> Result<Rules, PlanError> {
    let mut rules = Rules::default();
    let text = file.max_file_size.as_ref().map(ToString::to_string);
    let layers = Layered::of([(Origin::File("max_file_size"), text)]);
    rules.max_file_size = layers.parse(rules.max_file_size, A_SIZE, or_none(size::parse))?;
    let text = file.max_new_files.as_ref().map(ToString::to_string);
    let layers = Layered::of([(Origin::File("max_new_files"), text)]);
    let number = or_none(|text| text.parse().ok());
    rules.max_new_files = layers.parse(rules.max_new_files, A_NUMBER, number)?;
    for text in &file.never_commit {
        rules.never_commit.push(pattern(text)?);
    }
    Ok(rules)
}

/// The outer one says whether the text is right.
pub(super) fn or_none<T>(parse: impl Fn(&str) -> Option<T>) -> impl Fn(&str) -> Option<Option<T>> {
    move |text| if text == "none" { Some(None) } else { parse(text).map(Some) }
}

fn pattern(text: &str) -> Result<Pattern, PlanError> {
    let origin = Origin::File("never_commit");
    let bad = || PlanError::Bad { origin, value: visible_line(text), expected: A_NAME };
    Pattern::new(text).ok_or_else(bad)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::settings::file::Limit;

    #[test]
    fn limits_can_be_set_and_switched_off() {
        let file = |size: &str, count| SettingsFile {
            max_file_size: Some(Limit::Word(size.to_owned())),
            max_new_files: Some(count),
            ..SettingsFile::default()
        };
        let set = rules(&file("2 MB", Limit::Number(7))).unwrap();
        assert_eq!((set.max_file_size, set.max_new_files), (Some(2_000_000), Some(7)));
        let none = || Limit::Word("none".to_owned());
        let off = rules(&file("none", none())).unwrap();
        assert_eq!((off.max_file_size, off.max_new_files), (None, None));
        assert_eq!(
            rules(&file("big", none())).unwrap_err().to_string(),
            "`max_file_size` in ralph.toml: `big` is not a size such as `10MB`, or `none`"
        );
    }

    #[test]
    fn patterns_are_added_and_a_wrong_one_is_said() {
        let file = |texts: &[&str]| SettingsFile {
            never_commit: texts.iter().map(|text| (*text).to_owned()).collect(),
            ..SettingsFile::default()
        };
        let rules_of = |texts: &[&str]| rules(&file(texts));
        let set = rules_of(&["*.log", "!target/"]).unwrap();
        let never = |path: &str| set.never(Path::new(path)).is_some();
        assert!(never("a.log") && never(".env") && !never("target/x"));
        assert!(rules_of(&["*.log", ""]).is_err());
    }
}
