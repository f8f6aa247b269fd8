//! What is committed is what the gates saw, whatever an agent writes into git's files.

use crate::support::{Prd, World};

/// One story whose attempt does this, and a gate that wants a good `f`.
fn world(did: &str) -> World {
    let script = format!("[default]\nsteps = [{{ run = '''{did}''' }}, \"complete\"]\n");
    let world = World::scripted(&Prd::stories(1), &script);
    world.write("ralph.toml", "verify = [\"grep -q good f\"]\n");
    world.write("f", "none\n");
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "settings"]);
    world
}

/// In the index, the times of `f` with the content of `../bad`, in one way or the other.
const STAGED: &str = "echo good > f; touch -d '1 hour ago' f; echo 'f filter=x' > ../a; echo bad! > ../bad; \
     git -c core.attributesFile=$PWD/../a -c filter.x.clean='cat ../bad' add f";

#[test]
fn times_in_an_index_show_nothing_about_a_files_content() {
    for after in [
        "",
        "; git update-index --assume-unchanged f",
        "; cp .git/index .git/ralph/index",
        "; cp .git/index .git/ralph/seen",
        "; git update-index --skip-worktree f; cp .git/index .git/ralph/index",
        "; git update-index --assume-unchanged f; rm -f .git/ralph/index",
    ] {
        let world = world(&format!("{STAGED}{after}"));
        let said = world.run(&[]);
        assert_eq!(said.code, 0, "{after}: {}", said.err);
        assert_eq!(world.git(&["show", "HEAD:f"]), "good\n", "{after}");
        assert_eq!(world.status(), "", "{after}");
    }
    // With an index of its own, next to git's.
    let seen = STAGED.replace("git -c", "GIT_INDEX_FILE=.git/ralph/seen git -c");
    let world = world(&seen);
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.git(&["show", "HEAD:f"]), "good\n");
}

/// The story's own file, and one that it does not change: the next story, and the next run.
#[test]
fn what_an_attempt_left_in_the_index_deceives_no_later_one() {
    let plant = "echo 'f filter=x' > ../a; touch -d '1 hour ago' f; \
                 git -c core.attributesFile=$PWD/../a -c filter.x.clean='cat ../bad' add f";
    let script = format!(
        "[[story.US-001.attempts]]\nsteps = [{{ run = '''echo good > f; echo bad! > ../bad; {plant}''' }}]\n\
         [[story.US-001.attempts]]\nsteps = [{{ run = 'echo w > w' }}, \"complete\"]\n"
    );
    let world = World::scripted(&Prd::stories(1), &script);
    world.write("ralph.toml", "verify = [\"grep -q good f\"]\n");
    world.write("f", "none\n");
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "settings"]);
    let said = world.run(&["--max-iterations", "1"]);
    assert_ne!(said.code, 0, "{}", said.err);
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.git(&["show", "HEAD:f"]), "good\n");
}
