//! Steps that change the work tree, told as the tool calls a real agent would make.
//!
//! A tool that fails says so in its result and the attempt goes on, as with a real agent.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use super::scene::Scene;
use super::stream::Stream;

pub fn write<W: Write>(
    stream: &mut Stream<W>,
    scene: &Scene,
    path: &Path,
    text: &str,
    append: bool,
) -> io::Result<()> {
    let path = scene.folder.join(path);
    // A folder's name may be no text, which JSON cannot say.
    let shown = path.to_string_lossy();
    let (tool, input) = if append {
        ("Edit", json!({ "file_path": shown, "old_string": "", "new_string": text }))
    } else {
        ("Write", json!({ "file_path": shown, "content": text }))
    };
    call(stream, tool, input, || {
        put(&path, text, append)?;
        Ok(format!("File created successfully at: {}", shown))
    })
}

pub fn delete<W: Write>(stream: &mut Stream<W>, scene: &Scene, path: &Path) -> io::Result<()> {
    let input = json!({ "command": format!("rm {}", path.display()) });
    call(stream, "Bash", input, || {
        fs::remove_file(scene.folder.join(path))?;
        Ok(NO_OUTPUT.to_owned())
    })
}

pub fn run<W: Write>(stream: &mut Stream<W>, scene: &Scene, command: &str) -> io::Result<()> {
    call(stream, "Bash", json!({ "command": command }), || {
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(command).current_dir(&scene.folder).stdin(Stdio::null());
        told(&shell.output()?)
    })
}

/// A call that was not allowed.
pub fn denied<W: Write>(stream: &mut Stream<W>, tool: &str) -> io::Result<()> {
    let input = json!({ "description": "something that needs permission" });
    let id = stream.tool_use(tool, &input)?;
    let message =
        format!("Claude requested permissions to use {tool}, but you haven't granted it yet.");
    stream.event(json!({
        "type": "system", "subtype": "permission_denied", "tool_name": tool, "tool_use_id": id,
        "message": message,
    }))?;
    stream.tool_result(&id, &Err(message))?;
    stream
        .totals
        .denials
        .push(json!({ "tool_name": tool, "tool_use_id": id, "tool_input": input }));
    Ok(())
}

/// What the real agent shows for a silent command.
const NO_OUTPUT: &str = "(Bash completed with no output)";

fn call<W: Write>(
    stream: &mut Stream<W>,
    tool: &str,
    input: Value,
    work: impl FnOnce() -> io::Result<String>,
) -> io::Result<()> {
    let id = stream.tool_use(tool, &input)?;
    stream.tool_result(&id, &work().map_err(|e| e.to_string()))
}

fn put(path: &Path, text: &str, append: bool) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file =
        OpenOptions::new().create(true).write(true).append(append).truncate(!append).open(path)?;
    file.write_all(text.as_bytes())
}

fn told(output: &Output) -> io::Result<String> {
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    let text = text.trim_end();
    match output.status.code() {
        Some(0) if text.is_empty() => Ok(NO_OUTPUT.to_owned()),
        Some(0) => Ok(text.to_owned()),
        Some(code) => {
            Err(io::Error::other(format!("Exit code {code}\n{text}").trim_end().to_owned()))
        }
        None => Err(io::Error::other(format!("{}\n{text}", output.status).trim_end().to_owned())),
    }
}
