//! `set_mark` on random files in random styles: nothing changes but the mark.

use proptest::prelude::*;
use proptest::sample::select;

use crate::model::Story;
use crate::text::backlog::parse;

use super::*;

/// How a file is laid out.
#[derive(Clone, Debug)]
struct Style {
    /// Before each field: nothing, a space, or a line break and indentation.
    lead: String,
    colon: &'static str,
    bom: bool,
    end: &'static str,
}

#[derive(Clone, Debug)]
struct Sample {
    style: Style,
    /// The fields of each story as `(name, value)`, in any order.
    stories: Vec<Vec<(&'static str, String)>>,
}

fn styles() -> impl Strategy<Value = Style> {
    let leads = ["", " ", "\n", "\n  ", "\n    ", "\n\t\t", "\r\n  ", "\r\n\t", "\r\n"];
    let colons = [":", ": ", " : ", ":\t"];
    let ends = ["", "\n", "\r\n", "\n\n"];
    (select(leads.to_vec()), select(colons.to_vec()), any::<bool>(), select(ends.to_vec()))
        .prop_map(|(lead, colon, bom, end)| Style { lead: lead.to_owned(), colon, bom, end })
}

fn strings() -> impl Strategy<Value = String> {
    let texts = [
        "",
        "x",
        "漢字",
        r"\u00e9",
        r"\n\t\\",
        r#"\"passes\": false"#,
        "a, } ] {",
        r"\ud83d\ude00",
    ];
    select(texts.to_vec()).prop_map(|text| format!("\"t{text}\""))
}

fn unknowns() -> impl Strategy<Value = String> {
    let values = [
        "1.10",
        "1e2",
        "123456789012345678901234567890",
        "null",
        "[]",
        "{ }",
        r#"{"passes": false, "id": "S0", "skipped":true}"#,
        r#"[ {"id":"S1"} , 1E+2]"#,
    ];
    select(values.to_vec()).prop_map(str::to_owned)
}

fn stories(number: usize) -> impl Strategy<Value = Vec<(&'static str, String)>> {
    let skipped = prop::option::of(select(vec!["true", "false", "null"]));
    let parts =
        (strings(), strings(), strings(), unknowns(), any::<bool>(), skipped, any::<bool>());
    let fields =
        parts.prop_map(move |(title, text, criterion, unknown, passes, skipped, alias)| {
            let mut fields = vec![
                ("id", format!("\"S{number}\"")),
                ("title", title),
                ("description", text),
                (if alias { "acceptanceCriteria" } else { "criteria" }, format!("[ {criterion}]")),
                (if alias { r"p\u0061sses" } else { "passes" }, passes.to_string()),
                ("zzz", unknown),
            ];
            fields.extend(skipped.map(|skipped| ("skipped", skipped.to_owned())));
            fields
        });
    fields.prop_shuffle()
}

fn samples() -> impl Strategy<Value = Sample> {
    let all = (1..5_usize).prop_flat_map(|count| (0..count).map(stories).collect::<Vec<_>>());
    (styles(), all).prop_map(|(style, stories)| Sample { style, stories })
}

impl Sample {
    fn text(&self) -> String {
        let Style { lead, colon, bom, end } = &self.style;
        let field = |(name, value): &(&str, String)| format!("{lead}\"{name}\"{colon}{value}");
        let story = |fields: &Vec<_>| {
            format!("{lead}{{{}{lead}}}", fields.iter().map(field).collect::<Vec<_>>().join(","))
        };
        let stories: Vec<String> = self.stories.iter().map(story).collect();
        let bom = if *bom { "\u{feff}" } else { "" };
        format!(
            "{bom}{{{lead}\"project\"{colon}\"p\",{lead}\"userStories\"{colon}[{}],{lead}\"description\"{colon}\"\"}}{end}",
            stories.join(",")
        )
    }

    fn has(&self, story: usize, field: &str) -> bool {
        self.stories[story].iter().any(|(name, _)| *name == field)
    }
}

fn read(text: &str) -> Vec<Story> {
    let parsed = parse(text);
    parsed.backlog.unwrap_or_else(|| panic!("{:?} in {text}", parsed.diagnostics)).stories.to_vec()
}

/// The parts of both between their common beginning and end.
fn difference<'t>(a: &'t str, b: &'t str) -> (&'t str, &'t str) {
    let start = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    let (a, b) = (a.get(start..).unwrap(), b.get(start..).unwrap());
    let end = a.bytes().rev().zip(b.bytes().rev()).take_while(|(a, b)| a == b).count();
    (a.get(..a.len() - end).unwrap(), b.get(..b.len() - end).unwrap())
}

fn is_inserted(text: &str, piece: &str, result: &str) -> bool {
    result.match_indices(piece).any(|(at, _)| {
        let (before, after) = (result.get(..at).unwrap(), result.get(at + piece.len()..).unwrap());
        [before, after].concat() == text
    })
}

proptest! {
    #[test]
    fn only_the_bytes_of_the_mark_change(sample in samples(), pick in any::<prop::sample::Index>()) {
        let text = sample.text();
        let before = read(&text);
        let number = pick.index(before.len());
        let story = before[number].id.clone();
        let flipped = set_mark(&text, &story, Mark::Passes(!before[number].passes)).unwrap();
        let (old, new) = difference(&text, &flipped);
        prop_assert!([("fals", "tru"), ("tru", "fals")].contains(&(old, new)), "{old} {new}");
        let mut expected = before.clone();
        expected[number].passes = !before[number].passes;
        prop_assert_eq!(read(&flipped), expected);
        let back = set_mark(&flipped, &story, Mark::Passes(before[number].passes)).unwrap();
        prop_assert_eq!(back, text);
    }

    #[test]
    fn a_skip_is_set_or_inserted_and_all_else_stays(sample in samples(), pick in any::<prop::sample::Index>()) {
        let text = sample.text();
        let before = read(&text);
        let number = pick.index(before.len());
        let story = before[number].id.clone();
        let skipped = set_mark(&text, &story, Mark::Skipped(true)).unwrap();
        let mut expected = before.clone();
        expected[number].skipped = true;
        prop_assert_eq!(read(&skipped), expected);
        let (old, new) = difference(&text, &skipped);
        if sample.has(number, "skipped") {
            prop_assert!(old.len() <= 5 && new.len() <= 5, "{old} {new}");
        } else {
            let added = skipped.len() - text.len();
            let Style { lead, colon, .. } = &sample.style;
            let whole = format!(",{lead}\"skipped\"{colon}true");
            prop_assert_eq!((old, added), ("", whole.len()));
            prop_assert!(is_inserted(&text, &whole, &skipped), "{skipped}");
        }
        let off = set_mark(&skipped, &story, Mark::Skipped(false)).unwrap();
        let on = set_mark(&off, &story, Mark::Skipped(true)).unwrap();
        prop_assert_eq!(on, skipped);
        prop_assert_eq!(read(&off)[number].skipped, false);
    }
}
