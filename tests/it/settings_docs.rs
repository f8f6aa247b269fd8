//! The tables of settings in the documentation are made of the declarations.
//!
//! `UPDATE_DOCS=1 cargo test --test it settings_docs` writes them.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use ralph::settings::{RunSettings, Setting};

const BEGIN: &str = "<!-- settings: made of src/settings/declared.rs -->\n";
const END: &str = "<!-- settings: end -->\n";

fn code(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("`{text}`") }
}

fn flag(setting: &Setting) -> String {
    setting
        .flag
        .map(|name| code(format!("--{name} {}", setting.takes).trim_end()))
        .unwrap_or_default()
}

fn default(setting: &Setting) -> String {
    let none = if setting.takes_none() && setting.default != "none" { " (or `none`)" } else { "" };
    match (setting.default, setting.default_note) {
        ("", note) => note.to_owned(),
        (value, _) => format!("{}{none}", code(value)),
    }
}

/// What can be given for one run.
fn short() -> String {
    let mut text =
        "\n| Flag | Environment | ralph.toml | Default |\n|---|---|---|---|\n".to_owned();
    for setting in RunSettings::declared() {
        if setting.flag.is_some() || setting.env.is_some() {
            let env = code(setting.env.unwrap_or_default());
            let (flag, key) = (flag(&setting), code(setting.key));
            writeln!(text, "| {flag} | {env} | {key} | {} |", default(&setting)).unwrap();
        }
    }
    text + "\n"
}

fn whole() -> String {
    let mut text = String::new();
    let mut group = None;
    for setting in RunSettings::declared() {
        if group != Some(setting.group) {
            group = Some(setting.group);
            write!(text, "\n## {}\n\n", setting.group).unwrap();
            text.push_str("| ralph.toml | What it does | Default | Flag, environment |\n");
            text.push_str("|---|---|---|---|\n");
        }
        let names = [flag(&setting), code(setting.env.unwrap_or_default())];
        let names: Vec<String> = names.into_iter().filter(|name| !name.is_empty()).collect();
        let (key, help) = (code(setting.key), setting.help);
        let names = names.join(", ");
        writeln!(text, "| {key} | {help} | {} | {names} |", default(&setting)).unwrap();
    }
    text + "\n"
}

fn compare(file: &str, table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (written, after) = rest.split_once(END).unwrap();
    if written != table && std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(written, table, "{file}: UPDATE_DOCS=1 cargo test --test it settings_docs");
}

#[test]
fn readme_has_what_can_be_given_for_one_run() {
    compare("README.md", &short());
}

#[test]
fn docs_have_every_setting() {
    compare("docs/settings.md", &whole());
}
