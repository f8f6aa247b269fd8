//! A human's commands are refused to agents and gates, whatever they do to their environment.

use crate::support::world::{Ends, RALPH};
use crate::support::{Prd, World};

const COMMANDS: [&str; 7] = [
    "mark US-001 pass",
    "nudge hello",
    "trust --yes",
    "undo US-001",
    "restore 1",
    "checkpoint",
    "run --agent mock --trust",
];

/// Tries each command without an environment, in a session of its own; then one as an orphan, and
/// one in another repository. `$1`: the file for what came of them.
fn act(other: &World) -> String {
    let clean = "env -i PATH=\"$PATH\" HOME=\"$HOME\" setsid";
    let tried: String = COMMANDS
        .map(|words| format!("{clean} -w {RALPH} {words} >> ../$1 2>&1; echo \"= $?\" >> ../$1\n"))
        .concat();
    let orphan = format!("{clean} {RALPH} mark US-001 pass >> ../$1 2>&1");
    let other = other.root();
    format!(
        "{tried}rm -f ../end; mkfifo ../end\n\
         (({orphan}; echo \"= $?\" >> ../$1; echo > ../end) &); read -r _ < ../end\n\
         cd {} && {clean} -w {RALPH} mark US-001 pass\n",
        other.display()
    )
}

#[test]
fn agents_and_gates_cannot_decide_without_their_environment_either() {
    let other = World::with(&Prd::stories(1));
    let script = "[default]\nsteps = [{ run = \"sh ../act agent\" }, \
                  { write = \"work.txt\", text = \"work\" }, \"complete\"]\n";
    let world = World::scripted(&Prd::stories(1), script);
    world.write("../act", &act(&other));
    world.write("ralph.toml", "verify = [\"sh ../act gate\"]\n");
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "settings"]);
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    // The baseline runs the gate too.
    for (name, times) in [("agent", 1), ("gate", 2)] {
        let came = world.read(&format!("../{name}"));
        let refused = |command: &str| format!("error: {command} is not available to agents\n= 1\n");
        let whole = COMMANDS.iter().chain(&COMMANDS[..1]).map(|words| {
            let (command, _) = words.split_once(' ').unwrap_or((words, ""));
            refused(&format!("`ralph {command}`"))
        });
        assert_eq!(came, whole.collect::<String>().repeat(times), "{name}");
    }
    assert_eq!(other.passing(), ["US-001"], "they may use ralph in a repository of their own");
}

#[test]
fn a_human_beside_the_run_is_not_refused() {
    let script = "[default]\nsteps = [{ run = \"echo y > ../here\" }, \"hang\"]\n";
    let world = World::scripted(&Prd::stories(2), script);
    let mut run = world.start(&[]);
    world.await_file("../here");
    let said = world.ralph(&["mark", "US-002", "skip"]);
    assert_eq!(said.code, 0, "{}", said.err);
    crate::support::world::signal(&run, rustix::process::Signal::TERM);
    run.code();
}
