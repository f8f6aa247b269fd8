//! Steps that do something: tool calls, as a real agent would make and tell them, processes that are
//! left behind, and floods of output.
//!
//! A tool that fails says so in its result and the attempt goes on, as with a real agent.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use super::script::Scene;
use super::step::{Flood, Grandchild, Kinship, Tree};
use super::stream::{Stream, tool_result};

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

const IDLE: &str = "sleep 1000";

/// `$0` is the command, `$1` the file for its process id.
const START: &str = r#"exec /bin/sh -c "$0""#;
const START_IN_SESSION: &str = r#"exec setsid /bin/sh -c "$0""#;
const START_AND_LEAVE: &str = r#"setsid /bin/sh -c "$0" & echo $! > "$1""#;

pub fn leave_process(left: &Grandchild, scene: &Scene) -> io::Result<()> {
    let pid_file = left.pid_file.as_ref().map(|file| scene.folder.join(file));
    let mut child = command(left, scene, pid_file.as_deref()).spawn()?;
    match (left.grandchild, pid_file) {
        (Kinship::DoubleFork, _) => child.wait().map(|_| ()),
        (_, Some(file)) => fs::write(file, format!("{}\n", child.id())),
        (_, None) => Ok(()),
    }
}

fn command(left: &Grandchild, scene: &Scene, pid_file: Option<&Path>) -> Command {
    let start = match left.grandchild {
        Kinship::Plain => START,
        Kinship::Setsid => START_IN_SESSION,
        Kinship::DoubleFork => START_AND_LEAVE,
    };
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(start).arg(left.command.as_deref().unwrap_or(IDLE));
    shell.arg(pid_file.unwrap_or(Path::new("/dev/null")));
    shell.current_dir(&scene.folder).stdin(Stdio::null()).stderr(Stdio::null());
    shell.stdout(if left.holds_output { Stdio::inherit() } else { Stdio::null() });
    if left.clean_env {
        shell.env_clear();
    }
    shell
}

/// A shell with its sleepers.
const BRANCH: u32 = 20;

/// `$0` branches and `$1` single leaves below the trunk. Each branch lets go of standard output
/// when all of it is there, so its end of file says that the tree is.
const GROW: &str = r#"
    leaves() { while [ $n -gt 0 ]; do sleep 1000 > /dev/null & n=$((n - 1)); done; }
    branches=$0
    while [ $branches -gt 0 ]; do
        { n=19; leaves; exec > /dev/null; wait; } &
        branches=$((branches - 1))
    done
    n=$1; leaves; exec > /dev/null; wait
"#;

pub fn leave_tree(tree: &Tree, scene: &Scene) -> io::Result<()> {
    let Some(below) = tree.tree.checked_sub(1) else { return Ok(()) };
    let deaf = if tree.ignore_term { "trap '' TERM\n" } else { "" };
    let mut trunk = Command::new("/bin/sh");
    trunk.arg("-c").arg(format!("{deaf}{GROW}"));
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
pub fn flood<W: Write>(stream: &mut Stream<W>, size: Flood) -> io::Result<()> {
    let (lines, chunks) = match size {
        Flood::Mb(mb) => (mb.saturating_mul(CHUNKS_PER_MEGABYTE), 1),
        Flood::LineMb(mb) => (1, mb.saturating_mul(CHUNKS_PER_MEGABYTE)),
    };
    (0..lines).try_for_each(|_| result_of(stream, chunks))
}

fn result_of<W: Write>(stream: &mut Stream<W>, chunks: u64) -> io::Result<()> {
    let chunk = [b'x'; CHUNK];
    let (before, after) = around_the_gap(stream);
    stream.bytes(before.as_bytes())?;
    for _ in 0..chunks {
        stream.bytes(&chunk)?;
    }
    stream.line(after.as_bytes())
}

fn around_the_gap<W: Write>(stream: &mut Stream<W>) -> (String, String) {
    if stream.is_plain() {
        return Default::default();
    }
    let mut event = tool_result("toolu_mock_flood", &Ok(GAP.to_owned()));
    // The text stands once in the message; a second copy would double the flood.
    event["tool_use_result"] = json!("");
    let text = event.to_string();
    let (before, after) = text.split_once(GAP).unwrap_or_default();
    (before.to_owned(), after.to_owned())
}
