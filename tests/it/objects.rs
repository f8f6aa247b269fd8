//! Damaged objects of git's: no run waits for one for ever, and none is complete without them.

use std::process::Command;

use crate::support::{Prd, World};

/// `damage` gets the object's file.
fn damaging(object: &str, damage: &str) -> String {
    format!(
        "o=$(git rev-parse {object}); f=.git/objects/$(echo $o | cut -c1-2)/$(echo $o | cut -c3-); \
         chmod u+w $f; {damage} $f"
    )
}

fn after(act: &str) -> (i32, String) {
    let script = format!(
        r#"
        [[story.US-001.attempts]]
        steps = [{{ run = '''{act}; echo a > a.txt''' }}, "complete"]
        [default]
        steps = [{{ write = "b.txt", text = "b\n" }}, "complete"]
        "#
    );
    let world = World::scripted(&Prd::stories(2), &script);
    let said = world.run(&[]);
    if said.code == 0 {
        assert_eq!(world.git(&["fsck", "--strict", "--no-dangling"]), "");
    }
    (said.code, said.err)
}

#[test]
fn a_cut_object_ends_the_run_and_is_named() {
    let own = "echo z > z; git add z; git commit -qm own";
    let act = format!("{own}; {}", damaging("HEAD", "truncate -s 40"));
    let (code, said) = after(&act);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("the git object") && said.contains("git fsck"), "{said}");
}

#[test]
fn a_cut_object_is_named_at_the_start() {
    let world = World::scripted(&Prd::stories(1), "[default]\nsteps = [\"complete\"]\n");
    let act = damaging("HEAD", "truncate -s 40");
    let mut shell = Command::new("sh");
    assert!(shell.args(["-c", &act]).current_dir(world.path(".")).status().unwrap().success());
    let said = world.run(&[]);
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(said.err.contains("the git object"), "{}", said.err);
}

#[test]
fn no_run_is_complete_without_what_the_branch_has() {
    let (code, said) = after(&damaging("HEAD:README.md", "truncate -s 0"));
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("the git object") && !said.contains("All tasks complete"), "{said}");
}

/// Ralph has a second name for it.
#[test]
fn a_deleted_object_is_back_before_the_run_goes_on() {
    let (code, said) = after(&damaging("HEAD:README.md", "rm -f"));
    assert_eq!(code, 0, "{said}");
}

#[test]
fn no_command_waits_for_a_cut_object() {
    let script = "[default]\nsteps = [{ run = \"echo w > work\" }, \"complete\"]\n";
    let world = World::scripted(&Prd::stories(1), script);
    assert_eq!(world.run(&[]).code, 0);
    let act = damaging("HEAD", "truncate -s 40");
    let mut shell = Command::new("sh");
    assert!(shell.args(["-c", &act]).current_dir(world.path(".")).status().unwrap().success());
    for command in [&["diff", "US-001"][..], &["undo", "US-001"], &["checkpoint"]] {
        let said = world.ralph(command);
        assert_eq!(said.code, 1, "{command:?}: {}{}", said.out, said.err);
        assert!(said.err.contains("the git object"), "{command:?}: {}", said.err);
    }
}
