//! `ralph init`.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

use crate::ui::UiOptions;

use super::args::InitArgs;
use super::error::CliError;
use super::print;

const PRD: &str = include_str!("../../PRD.example.json");
const PROMPT: &str = include_str!("../../PROMPT.md.example");

pub fn init(args: &InitArgs, look: &UiOptions) -> Result<u8, CliError> {
    std::fs::create_dir_all(&args.folder)?;
    let mut report = String::new();
    for (name, text) in [("PRD.json", PRD), ("PROMPT.md", PROMPT)] {
        let path = args.folder.join(name);
        let what = if write_new(&path, text)? { "wrote" } else { "kept, it was there already:" };
        report.push_str(&format!("{what} {}\n", path.display()));
    }
    if !look.quiet {
        report.push_str("Edit them, then: ralph check && ralph run --dry-run && ralph run\n");
        print(&report)?;
    }
    Ok(0)
}

/// False when something is there already.
fn write_new(path: &Path, text: &str) -> io::Result<bool> {
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(mut file) => file.write_all(text.as_bytes()).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}
