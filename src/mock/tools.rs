//! Steps with effects: tool calls as a real agent makes and reports them, leftover processes, and
//! large amounts of output.
//!
//! A tool that fails reports that in its result, and the attempt continues, as with a real agent.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use super::script::Scene;
use super::step::{Flood, Grandchild, Kinship};
use super::stream::{Stream, tool_result};

/// What the real agent shows for a silent command.
pub const NO_OUTPUT: &str = "(Bash completed with no output)";

pub fn write(stream: &mut Stream<'_>, path: &Path, text: &str, append: bool) -> io::Result<()> {
    // JSON cannot have a path that is not text.
    let shown = path.to_string_lossy();
    let (tool, input) = if append {
        ("Edit", json!({ "file_path": shown, "old_string": "", "new_string": text }))
    } else {
        ("Write", json!({ "file_path": shown, "content": text }))
    };
    call(stream, tool, input, || {
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        let mut options = OpenOptions::new();
        options.create(true).write(true).append(append).truncate(!append);
        options.open(path)?.write_all(text.as_bytes())?;
        Ok(format!("File created successfully at: {shown}"))
    })
}

pub fn delete(stream: &mut Stream<'_>, scene: &Scene, path: &Path) -> io::Result<()> {
    let input = json!({ "command": format!("rm {}", path.display()) });
    call(stream, "Bash", input, || {
        fs::remove_file(scene.folder.join(path))?;
        Ok(NO_OUTPUT.to_owned())
    })
}

pub fn run(stream: &mut Stream<'_>, scene: &Scene, command: &str) -> io::Result<()> {
    call(stream, "Bash", json!({ "command": command }), || {
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(command).current_dir(&scene.folder).stdin(Stdio::null());
        shown(&shell.output()?)
    })
}

/// A call that was not allowed.
pub fn denied(stream: &mut Stream<'_>, tool: &str) -> io::Result<()> {
    let input = json!({ "description": "something that needs permission" });
    let id = stream.tool_use(tool, &input)?;
    let message =
        format!("Claude requested permissions to use {tool}, but you haven't granted it yet.");
    stream.event(json!({
        "type": "system", "subtype": "permission_denied", "tool_name": tool, "tool_use_id": id,
        "message": message,
    }))?;
    stream.event(tool_result(&id, &Err(message)))?;
    let denial = json!({ "tool_name": tool, "tool_use_id": id, "tool_input": input });
    stream.totals.denials.push(denial);
    Ok(())
}

fn call(
    stream: &mut Stream<'_>,
    tool: &str,
    input: Value,
    work: impl FnOnce() -> io::Result<String>,
) -> io::Result<()> {
    let id = stream.tool_use(tool, &input)?;
    stream.event(tool_result(&id, &work().map_err(|e| e.to_string())))
}

fn shown(output: &Output) -> io::Result<String> {
    let printed = [output.stdout.as_slice(), &output.stderr].map(String::from_utf8_lossy).concat();
    let text = printed.trim_end();
    let end = match output.status.code() {
        Some(0) if text.is_empty() => return Ok(NO_OUTPUT.to_owned()),
        Some(0) => return Ok(text.to_owned()),
        Some(code) => format!("Exit code {code}"),
        None => output.status.to_string(),
    };
    Err(io::Error::other(format!("{end}\n{text}").trim_end().to_owned()))
}

const IDLE: &str = "sleep 1000";

pub fn leave_process(left: &Grandchild, scene: &Scene) -> io::Result<()> {
    // `$0` is the command, `$1` the file for its process id.
    let start = match left.grandchild {
        Kinship::Plain => r#"exec /bin/sh -c "$0""#,
        Kinship::Setsid => r#"exec setsid /bin/sh -c "$0""#,
        Kinship::DoubleFork => r#"setsid /bin/sh -c "$0" & echo $! > "$1""#,
    };
    let pid_file = left.pid_file.as_ref().map(|file| scene.folder.join(file));
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(start).arg(left.command.as_deref().unwrap_or(IDLE));
    shell.arg(pid_file.as_deref().unwrap_or(Path::new("/dev/null")));
    shell.current_dir(&scene.folder).stdin(Stdio::null()).stderr(Stdio::null());
    shell.stdout(if left.holds_output == Some(true) { Stdio::inherit() } else { Stdio::null() });
    if left.clean_env == Some(true) {
        shell.env_clear();
    }
    let mut child = shell.spawn()?;
    match (left.grandchild, pid_file) {
        (Kinship::DoubleFork, _) => child.wait().map(|_| ()),
        (_, Some(file)) => fs::write(file, format!("{}\n", child.id())),
        (_, None) => Ok(()),
    }
}

/// A shell with its sleepers.
const BRANCH: u32 = 20;

/// `$0` branches and `$1` single leaves below the trunk. Each branch closes standard output when all
/// of it has started, so the end of file says that the whole tree has.
const GROW: &str = r#"
    leaves() { while [ $n -gt 0 ]; do sleep 1000 > /dev/null & n=$((n - 1)); done; }
    branches=$0
    while [ $branches -gt 0 ]; do
        { n=19; leaves; exec > /dev/null; wait; } &
        branches=$((branches - 1))
    done
    n=$1; leaves; exec > /dev/null; wait
"#;

/// Returns when all of them run. With `ignore_term` none of them ends on SIGTERM.
pub fn leave_tree(processes: u32, ignore_term: bool, scene: &Scene) -> io::Result<()> {
    let Some(below) = processes.checked_sub(1) else { return Ok(()) };
    let trap = if ignore_term { "trap '' TERM\n" } else { "" };
    let mut trunk = Command::new("/bin/sh");
    trunk.arg("-c").arg(format!("{trap}{GROW}"));
    trunk.args([below / BRANCH, below % BRANCH].map(|count| count.to_string()));
    trunk.current_dir(&scene.folder).stdin(Stdio::null()).stderr(Stdio::null());
    let trunk = trunk.stdout(Stdio::piped()).spawn()?;
    trunk.stdout.map_or(Ok(0), |mut there| there.read_to_end(&mut Vec::new())).map(|_| ())
}

const CHUNK: usize = 50_000;
const CHUNKS_PER_MEGABYTE: u64 = 20;
/// Where the chunks go in an event; nothing else in it looks like this.
const GAP: &str = "@@flood@@";

/// Tool results, in lines of about 50 kB or all in one.
pub fn flood(stream: &mut Stream<'_>, size: Flood) -> io::Result<()> {
    let (lines, chunks) = match size {
        Flood::Mb(mb) => (mb.saturating_mul(CHUNKS_PER_MEGABYTE), 1),
        Flood::LineMb(mb) => (1, mb.saturating_mul(CHUNKS_PER_MEGABYTE)),
    };
    let mut event = tool_result("toolu_mock_flood", &Ok(GAP.to_owned()));
    // The message has the text already; a second copy would double the flood.
    event["tool_use_result"] = json!("");
    let event = if stream.plain { GAP.to_owned() } else { event.to_string() };
    let (before, after) = event.split_once(GAP).unwrap_or_default();
    for _ in 0..lines {
        stream.bytes(before.as_bytes())?;
        for _ in 0..chunks {
            stream.bytes(&[b'x'; CHUNK])?;
        }
        stream.line(after.as_bytes())?;
    }
    Ok(())
}
