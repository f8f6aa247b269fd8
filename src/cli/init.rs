//! `ralph init`.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

use crate::core::text::visible_line;
use crate::ui::UiOptions;

use super::args::InitArgs;
use super::error::CliError;
use super::gates;
use super::print;

const PRD: &str = include_str!("../../PRD.example.json");
const PROMPT: &str = include_str!("../../PROMPT.md.example");

pub fn init(args: &InitArgs, look: &UiOptions) -> Result<u8, CliError> {
    make_folder(&args.folder)?;
    let mut report = String::new();
    for (name, text) in [("PRD.json", PRD), ("PROMPT.md", PROMPT)] {
        let path = args.folder.join(name);
        let written = write_new(&path, text).map_err(|error| not_written(&path, &error))?;
        let what = if written { "wrote" } else { "kept, it was there already:" };
        report.push_str(&format!("{what} {}\n", path.display()));
    }
    report.push_str(&gates::set_up(args, look)?);
    if !look.quiet {
        report.push_str("Edit them, then: ralph check && ralph run --dry-run && ralph run\n");
        print(&report)?;
    }
    Ok(0)
}

fn make_folder(folder: &Path) -> Result<(), CliError> {
    let shown = visible_line(&folder.to_string_lossy());
    std::fs::create_dir_all(folder).map_err(|error| {
        // What is there already is no error of `create_dir_all`, unless it is something else.
        CliError::Refused(match error.kind() {
            io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
                format!(
                    "`{shown}` is not a folder; name the one to write PRD.json and PROMPT.md in"
                )
            }
            _ => format!("the folder `{shown}` cannot be made: {error}; name another one"),
        })
    })
}

fn not_written(path: &Path, error: &io::Error) -> CliError {
    let shown = visible_line(&path.to_string_lossy());
    CliError::Refused(format!("`{shown}` cannot be written: {error}; name another folder"))
}

/// False when something is there already.
pub fn write_new(path: &Path, text: &str) -> io::Result<bool> {
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(mut file) => file.write_all(text.as_bytes()).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}
