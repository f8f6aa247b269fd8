//! Leaves many processes behind at once.

use std::io::{self, Read};
use std::process::{Command, Stdio};

use serde::Deserialize;

use super::scene::Scene;

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tree {
    /// How many processes there are in it.
    pub tree: u32,
    /// None of them ends when it is only asked to.
    #[serde(default)]
    pub ignore_term: bool,
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

pub fn grow(tree: &Tree, scene: &Scene) -> io::Result<()> {
    let Some(below) = tree.tree.checked_sub(1) else { return Ok(()) };
    let deaf = if tree.ignore_term { "trap '' TERM\n" } else { "" };
    let mut trunk = Command::new("/bin/sh");
    trunk.arg("-c").arg(format!("{deaf}{GROW}"));
    trunk.args([below / BRANCH, below % BRANCH].map(|count| count.to_string()));
    trunk.current_dir(&scene.folder).stdin(Stdio::null()).stderr(Stdio::null());
    let trunk = trunk.stdout(Stdio::piped()).spawn()?;
    trunk.stdout.map_or(Ok(0), |mut there| there.read_to_end(&mut Vec::new())).map(|_| ())
}
