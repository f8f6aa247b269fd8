//! What counts as evidence that a story is done.

use ralph::model::{Event, Recorded, StoryChange};

use rustix::process::Signal;

use crate::hostile::kill_when_here;
use crate::support::world::{Ends, signal};
use crate::support::{Prd, World};

/// Whatever shape its command has: none of them is more than a failed gate.
#[test]
fn a_gate_that_is_not_there_yet_is_red_until_the_work_brings_it() {
    let gates = [
        r#"". .venv/bin/activate && true""#,
        r#""cd sub && ./check.sh""#,
        r#""node --test . || true""#,
        r#"{ run = ["./check.sh"], dir = "sub" }"#,
        r#""tools/run.sh""#,
    ];
    let script = "[default]\nsteps = [{ run = '''mkdir -p .venv/bin sub tools
        : > .venv/bin/activate
        printf '#!/bin/sh\\n' | tee sub/check.sh > tools/run.sh
        chmod +x sub/check.sh tools/run.sh''' }, \"complete\"]\n";
    let world = World::scripted(&Prd::stories(1), script);
    world.write("ralph.toml", &format!("verify = [{}]\n", gates.join(", ")));
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "settings"]);
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("`tools/run.sh` is not there yet"), "{}", said.err);
    let missing = "`./check.sh` could not be started: it is not there yet";
    assert!(said.err.contains(missing), "{}", said.err);
    assert_eq!(world.passing(), ["US-001"]);
}

/// Each attempt ends with the tree that it began with, except for the backlog.
#[test]
fn a_gate_that_was_green_before_the_work_proves_nothing() {
    for did in [
        "true",
        "git commit -q --allow-empty -m work",
        "echo x > x; git add x; git commit -qm work; git rm -q x; git commit -qm back",
        "echo x > x; git add x; git commit -qm work; rm x",
        "sed -i 's/Story 1/Story one/' PRD.json; git commit -qam work",
        "echo SECRET=1 > .env",
    ] {
        let script = format!("[default]\nsteps = [{{ run = '''{did}''' }}, \"complete\"]\n");
        let world = World::scripted(&Prd::stories(1), &script);
        world.write("ralph.toml", "verify = [\"test -e README.md\"]\nmax_attempts = 4\n");
        world.git(&["add", "."]);
        world.git(&["commit", "-qm", "settings"]);
        let said = world.run(&[]);
        assert_eq!(said.code, 4, "{did}: {}", said.err);
        assert_eq!(world.passing(), [""; 0], "{did}");
        let back = "US-001 is not done: nothing changed and nothing turned green";
        assert!(said.err.contains(back), "{did}: {}", said.err);
        let asks = "US-001 asks: the agent claims US-001 again, but nothing changed";
        assert!(said.err.contains(asks), "{did}: {}", said.err);
        assert_eq!(world.iteration_files("prompt.md").len(), 2, "{did}: {}", said.err);
    }
}

fn closings(world: &World) -> Vec<StoryChange> {
    let change = |one: Recorded| match one.event {
        Event::StoryClosed(closed) => closed.change,
        _ => None,
    };
    world.journal().into_iter().filter_map(change).collect()
}

/// Whoever committed the work, and whatever else was in the tree.
#[test]
fn what_is_closed_says_how_much_it_changed() {
    for commits in ["", "; git add -A; git commit -qm own"] {
        let work = format!("seq 3 > a; seq 2 > b; sed -i 2d lines; rm gone{commits}; echo c > c");
        let serve = "{ run = \"touch ../served\" }";
        let script = format!(
            "[story.US-001]\nsteps = [{serve}, {{ run = '''{work}''' }}, \"complete\"]\n\
             [story.US-002]\nsteps = [{serve}, \"complete\"]\n"
        );
        let world = World::scripted(&Prd::stories(2), &script);
        world.write("lines", "1\n2\n3\n");
        world.write("gone", "1\n");
        world.write("ralph.toml", "verify = [\"test -e ../served\"]\n");
        world.git(&["add", "."]);
        world.git(&["commit", "-qm", "settings"]);
        let said = world.run(&["--once", "--story", "US-001"]);
        assert_eq!(said.code, 0, "{commits}: {}", said.err);
        let is_told = said.err.contains("✓ Task US-001 complete · 5 files, +6 -2 · ");
        assert!(is_told, "{commits}: {}", said.err);
        let message = world.git(&["log", "-1", "--format=%B"]);
        assert!(message.contains("\nRalph-Change: 5 files, +6 -2\n"), "{commits}: {message}");
        let report = world.read(".ralph/report.json");
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        let change = &report["iterations"][0]["change"];
        assert_eq!((&change["files"], &change["removed"]), (&5.into(), &2.into()), "{commits}");
        std::fs::remove_file(world.path("../served")).unwrap();
        let said = world.run(&[]);
        assert_eq!(said.code, 0, "{commits}: {}", said.err);
        let closed = "no change; `test -e ../served` turned green";
        assert!(
            said.err.contains(&format!("✓ Task US-002 complete · {closed} · ")),
            "{}",
            said.err
        );
        let message = world.git(&["log", "-1", "--format=%B"]);
        assert!(message.contains(&format!("\nRalph-Change: {closed}\n")), "{commits}: {message}");
        assert_eq!(closings(&world).len(), 2, "{commits}");
    }
}

/// Of ralph.toml or a story's own, and whether its command says so or its script.
#[test]
fn a_gate_about_one_story_runs_again_for_each_closed_one() {
    let check = "echo $RALPH_STORY >> ../ran; test -e $RALPH_STORY.txt";
    for (gate, is_each) in [
        ("\"sh check.sh\"", true),
        ("\"sh check.sh $RALPH_STORY\"", true),
        ("{ run = \"sh check.sh\", each_story = false }", false),
    ] {
        let work = "{ run = \"echo work >> $RALPH_STORY.txt\" }";
        let script = format!(
            "[story.US-001]\nsteps = [{work}, \"complete\"]\n\
             [[story.US-002.attempts]]\nsteps = [{work}, {{ run = \"rm US-001.txt\" }}, \"complete\"]\n\
             [[story.US-002.attempts]]\nsteps = [{{ run = \"echo work > US-001.txt\" }}, \"complete\"]\n"
        );
        let world = World::scripted(&Prd::stories(2), &script);
        world.write("check.sh", check);
        world.write("ralph.toml", &format!("verify = [{gate}]\n"));
        world.git(&["add", "."]);
        world.git(&["commit", "-qm", "settings"]);
        let said = world.run(&[]);
        assert_eq!(said.code, 0, "{gate}: {}", said.err);
        let breaks = "US-002 is not done: this work breaks the closed story US-001";
        assert_eq!(said.err.contains(breaks), is_each, "{gate}: {}", said.err);
        let ran = world.read("../ran");
        let expected = match is_each {
            // Where it fails for a closed story, it runs on the base too.
            true => "US-001\nUS-002\nUS-001\nUS-001\nUS-002\nUS-001\n",
            // Before any work it runs for no story.
            false => "\nUS-001\nUS-002\n",
        };
        assert_eq!(ran, expected, "{gate}");
    }
}

/// The tools are functions of a shell: what they read is named by no gate.
#[test]
fn what_defines_a_gates_command_counts_as_its_script() {
    let tools = "make() { sh Makefile; }\nnpm() { grep -q jest package.json; }\n\
         pytest() { true; }\npython3() { true; }\njust() { true; }\n";
    for (gate, did, told) in [
        ("make test", "echo true > Makefile", Some("Makefile")),
        ("make test", "echo all: > GNUmakefile", Some("GNUmakefile")),
        ("npm test", "sed -i 's/jest/true jest/' package.json", Some("package.json")),
        ("npm test", "sed -i 's/1.0/2.0/' package.json", None),
        ("pytest", "echo x > tests/conftest.py", Some("tests/conftest.py")),
        ("pytest", "echo x > pytest.ini", Some("pytest.ini")),
        ("cd tests && pytest", "echo x > conftest.py", Some("conftest.py")),
        (
            "pytest",
            "mkdir tests/unit; echo x > tests/unit/conftest.py",
            Some("tests/unit/conftest.py"),
        ),
        ("just", "echo 'a:' > justfile", None),
        ("make test", "echo SHELL := /bin/true > local.mk", Some("local.mk")),
        ("make test", "mkdir conf; echo SHELL := /bin/true > conf/a.mk", Some("conf/a.mk")),
        ("make test", "echo a > local.txt", None),
        ("npm test", "echo script-shell=/bin/true > .npmrc", Some(".npmrc")),
        ("npm test", "echo registry=https://r.example > .npmrc", None),
        ("python3 -m unittest", "echo > unittest.py", Some("unittest.py")),
        (
            "python3 -m unittest",
            "mkdir lib; echo > lib/sitecustomize.py",
            Some("lib/sitecustomize.py"),
        ),
        ("python3 -m unittest", "echo > tests/test_b.py; echo > helpers.py", None),
        ("python3 -m checks", "echo > checks.py", None),
    ] {
        let script =
            format!("[default]\nsteps = [{{ run = '''echo x > x; {did}''' }}, \"complete\"]\n");
        let world = World::scripted(&Prd::stories(1), &script);
        world.write("ralph.toml", &format!("verify = [\". ./tools.sh; {gate}\"]\n"));
        world.write("tools.sh", tools);
        let includes = "-include local.mk\ninclude $(wildcard conf/*.mk)\n";
        world.write("Makefile", &format!("test -e x; exit\n{includes}"));
        let package = r#"{ "scripts": { "test": "jest" }, "dependencies": { "a": "1.0" } }"#;
        world.write("package.json", package);
        world.write("tests/conftest.py", "");
        world.write("tests/test_a.py", "");
        world.git(&["add", "."]);
        world.git(&["commit", "-qm", "settings"]);
        let said = world.run(&[]);
        assert_eq!(said.code, if told.is_some() { 4 } else { 0 }, "{did}: {}", said.err);
        if let Some(path) = told {
            let asks = format!(
                "US-001 asks: work on US-001 changed what needs your approval: `{path}` changed"
            );
            assert!(said.err.contains(&asks), "{did}: {}", said.err);
        }
    }
}

/// Left out of a commit, or nothing at all; and what a gate wrote may be committed with a story.
#[test]
fn what_a_gate_writes_is_no_work_of_the_storys() {
    for did in ["true", "echo SECRET=1 > .env"] {
        for gate in [
            r#""test -e Cargo.lock || echo l > Cargo.lock""#,
            r#""echo g > kept""#,
            r#"{ run = "echo formatted > README.md", fix = true }"#,
        ] {
            let script = format!("[default]\nsteps = [{{ run = \"{did}\" }}, \"complete\"]\n");
            let world = World::scripted(&Prd::stories(1), &script);
            world.write("ralph.toml", &format!("verify = [{gate}]\nkeep = [\"kept\"]\n"));
            world.git(&["add", "."]);
            world.git(&["commit", "-qm", "settings"]);
            let said = world.run(&[]);
            assert_eq!(said.code, 4, "{did} {gate}: {}", said.err);
            assert_eq!(world.passing(), [""; 0], "{did} {gate}");
            let asks = "US-001 asks: the agent claims US-001 again, but nothing changed";
            assert!(said.err.contains(asks), "{did} {gate}: {}", said.err);
        }
    }
}

/// Closed, or not begun yet: the story whose work it is looks done afterwards.
#[test]
fn the_scripts_of_other_stories_gates_are_asked_about_too() {
    for (weakens, other) in [("US-001", "US-002"), ("US-002", "US-001")] {
        let work = "echo work > $RALPH_STORY.txt";
        let act = format!("rm -f {other}.txt; echo true > check-{other}.sh");
        let script = format!(
            "[story.{weakens}]\nsteps = [{{ run = '{work}; {act}' }}, \"complete\"]\n\
             [story.{other}]\nsteps = [{{ run = \"{work}\" }}, \"complete\"]\n"
        );
        let gate = |id| format!(r#""verify": ["sh check-{id}.sh"]"#);
        let prd = Prd::default().story(&gate("US-001")).story(&gate("US-002"));
        let world = World::scripted(&prd, &script);
        for id in ["US-001", "US-002"] {
            world.write(&format!("check-{id}.sh"), &format!("test -e {id}.txt\n"));
        }
        world.git(&["add", "."]);
        world.git(&["commit", "-qm", "gates"]);
        let said = world.run(&[]);
        assert_eq!(said.code, 4, "{weakens}: {}", said.err);
        let asks =
            format!("work on {weakens} changed what needs your approval: `check-{other}.sh`");
        assert!(said.err.contains(&asks), "{weakens}: {}", said.err);
        assert_eq!(world.passing(), [other], "{weakens}: {}", said.err);
    }
}

/// Without ralph's mark in the reflog a commit counts as the human's, and stays.
#[test]
fn what_a_commit_without_a_mark_changed_of_a_gate_is_asked_about() {
    for commit in [
        "env -u GIT_REFLOG_ACTION git commit -qam tweak",
        "git add -A; git update-ref HEAD $(git commit-tree -p HEAD -m tweak $(git write-tree))",
    ] {
        let act = format!("echo true > check.sh; {commit}; echo x > x");
        let script = format!("[default]\nsteps = [{{ run = '''{act}''' }}, \"complete\"]\n");
        let world = World::scripted(&Prd::stories(1), &script);
        world.write("ralph.toml", "verify = [\"sh check.sh\"]\n");
        world.write("check.sh", "test -e work\n");
        world.git(&["add", "."]);
        world.git(&["commit", "-qm", "gate"]);
        let said = world.run(&[]);
        assert_eq!(said.code, 4, "{commit}: {}", said.err);
        let asks = "work on US-001 changed what needs your approval: `check.sh` changed";
        assert!(said.err.contains(asks), "{commit}: {}", said.err);
        assert!(world.subjects().contains(&"tweak".to_owned()), "{commit}: {}", said.err);
    }
}

/// The gate was red before the human made it green, so it says nothing about the agent's work.
#[test]
fn a_gate_that_was_red_at_another_state_than_the_storys_base_proves_nothing() {
    let world = World::scripted(&Prd::stories(1), "[default]\nsteps = [\"complete\"]\n");
    world.write("ralph.toml", "verify = [\"test -e work\"]\nmax_attempts = 4\n");
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "settings"]);
    let hangs = "[default]\nsteps = [{ run = \"echo y > ../here; sleep 600\" }]\n";
    std::fs::write(world.script(), hangs).unwrap();
    let mut child = world.start(&[]);
    world.await_file("../here");
    signal(&child, Signal::INT);
    assert_eq!(child.code(), 130);
    world.write("work", "the human's\n");
    world.git(&["add", "work"]);
    world.git(&["commit", "-qm", "work"]);
    std::fs::write(world.script(), "[default]\nsteps = [\"complete\"]\n").unwrap();
    let said = world.run(&[]);
    assert_eq!(said.code, 4, "{}", said.err);
    assert_eq!(world.passing(), [""; 0]);
    let back = "US-001 is not done: nothing changed and nothing turned green";
    assert!(said.err.contains(back), "{}", said.err);
}

/// Also where the gate's command and script say nothing of the story.
#[test]
fn what_runs_for_a_closed_story_hears_of_that_story() {
    let own = "echo $RALPH_STORY >> ../ran";
    for gate in ["sh a.sh", "make -s check", own] {
        let work = "{ run = \"echo work > $RALPH_STORY.txt\" }";
        let script = format!("[default]\nsteps = [{work}, \"complete\"]\n");
        let prd = Prd::default().story(&format!(r#""verify": ["{gate}"]"#)).story("");
        let world = World::scripted(&prd, &script);
        world.write("a.sh", ". ./b.sh\n");
        world.write("b.sh", "test -e $RALPH_STORY.txt\necho $RALPH_STORY >> ../ran\n");
        world.write("Makefile", "check:\n\t@sh b.sh\n");
        world.git(&["add", "."]);
        world.git(&["commit", "-qm", "gates"]);
        let said = world.run(&[]);
        assert_eq!(said.code, 0, "{gate}: {}", said.err);
        assert_eq!(world.read("../ran"), "US-001\nUS-001\n", "{gate}");
    }
}

/// A closed story's gate fails on what the next story began with, too.
#[test]
fn no_story_is_blamed_for_a_gate_that_was_red_before_it() {
    let script = "[default]\nsteps = [{ run = \"echo x > $RALPH_STORY.txt; rm -f old; git add -A; \
                  git commit -qm own\" }, \"complete\"]\n";
    let prd = Prd::stories(0).story("\"verify\": [\"test -e never\"]").story("").story("");
    let world = World::scripted(&prd, script);
    world.write("ralph.toml", "verify = [\"echo g > kept\"]\nkeep = [\"kept\"]\n");
    world.write("old", "old\n");
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "settings"]);
    world.ralph(&["mark", "US-001", "pass"]);
    world.git(&["commit", "-qam", "mark"]);
    let said = world.run(&[]);
    assert_eq!(world.passing(), ["US-001", "US-002", "US-003"], "{}", said.err);
    assert_eq!(said.code, 4, "{}", said.err);
    let told = "✗ `test -e never` failed with exit code 1, and was red before this story";
    assert_eq!(said.err.matches(told).count(), 1, "{}", said.err);
    let end = "US-001 is closed, but `test -e never` fails, and did before later stories";
    assert_eq!(said.err.matches(end).count(), 1, "{}", said.err);
    assert_eq!(world.iteration_files("prompt.md").len(), 2, "nobody is sent back: {}", said.err);
    let files = world.git(&["ls-tree", "--name-only", "HEAD"]);
    assert_eq!(files, "PRD.json\nREADME.md\nUS-002.txt\nUS-003.txt\nkept\nralph.toml\n");
    assert_eq!(world.status(), "");
    let message = world.git(&["log", "-1", "--format=%B"]);
    assert!(message.contains("\nRalph-Gate: test -e never (red before this story)\n"), "{message}");
}

#[test]
fn a_gate_that_is_killed_on_the_storys_base_leaves_the_work_as_it_was() {
    let gate = "test ! -e US-002.txt || exit 1; echo y >> ../here; test $(wc -l < ../here) = 2 || sleep 600; exit 1";
    let prd = Prd::stories(0).story(&format!("\"verify\": [\"{gate}\"]")).story("");
    let script =
        "[default]\nsteps = [{ run = \"echo x > $RALPH_STORY.txt; rm old.txt\" }, \"complete\"]\n";
    let world = World::scripted(&prd, script);
    world.write("ralph.toml", "keep = [\"*.txt\"]\n");
    world.write("old.txt", "old\n");
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "settings"]);
    world.ralph(&["mark", "US-001", "pass"]);
    world.git(&["commit", "-qam", "mark"]);
    kill_when_here(&world);
    assert!(!world.path("US-002.txt").exists() && world.path("old.txt").exists());
    let said = world.run(&[]);
    assert_eq!(world.passing(), ["US-001", "US-002"], "{}", said.err);
    let files = world.git(&["show", "--name-status", "--format=", "HEAD"]);
    assert_eq!(files, "M\tPRD.json\nA\tUS-002.txt\nD\told.txt\n");
    assert_eq!(world.iteration_files("prompt.md").len(), 1, "the claim stands: {}", said.err);
}

/// However the run ends, and whether or not the story that found it is closed.
#[test]
fn each_end_names_a_gate_that_was_red_before_a_story() {
    let script = "[default]\nsteps = [{ run = \"echo x > $RALPH_STORY.txt\" }, \"complete\"]\n";
    let refused = "\"verify\": [\"false\"]";
    for (second, args, code) in [
        ("", &["--story", "US-002"][..], 4),
        ("", &["--once"], 3),
        ("", &["--max-iterations", "1"], 3),
        (refused, &["--max-iterations", "1"], 3),
    ] {
        let prd = Prd::stories(0).story("\"verify\": [\"test -e never\"]").story(second).story("");
        let world = World::scripted(&prd, script);
        world.ralph(&["mark", "US-001", "pass"]);
        world.git(&["commit", "-qam", "mark"]);
        let said = world.run(args);
        assert_eq!(said.code, code, "{second} {args:?}: {}", said.err);
        let end = "US-001 is closed, but `test -e never` fails, and did before later stories";
        let is_checked = second.is_empty();
        let count = said.err.matches(end).count();
        assert_eq!(count, usize::from(is_checked), "{second} {args:?}: {}", said.err);
    }
}

/// What it did is outside of the tree, and the gate that shows it is the story's own, or for each story.
#[test]
fn a_storys_own_gate_that_only_reads_is_known_from_before_the_work() {
    let script = "[default]\nsteps = [{ run = \"touch ../$RALPH_STORY\" }, \"complete\"]\n";
    let own = |id: &str| format!("\"verify\": [\"test -e ../{id}\"]");
    let each = "verify = [\"test -e ../$RALPH_STORY\"]\n";
    let (one, two) = (own("US-001"), own("US-002"));
    for (first, second, settings) in [(one.as_str(), two.as_str(), ""), ("", "", each)] {
        let world = World::scripted(&Prd::stories(0).story(first).story(second), script);
        world.write("ralph.toml", settings);
        world.git(&["add", "."]);
        world.git(&["commit", "-qm", "settings"]);
        let said = world.run(&[]);
        assert_eq!(said.code, 0, "{settings}: {}", said.err);
        assert_eq!(said.err.matches("no change; `test -e ../").count(), 2, "{}", said.err);
        assert_eq!(said.err.matches("turned green").count(), 2, "{settings}: {}", said.err);
    }
}

#[test]
fn a_storys_own_gate_that_was_green_before_the_work_proves_nothing() {
    let prd = Prd::stories(0).story("\"verify\": [\"test -e README.md\"]");
    let world = World::scripted(&prd, "[default]\nsteps = [\"complete\"]\n");
    let said = world.run(&[]);
    assert_eq!(said.code, 4, "{}", said.err);
    assert_eq!(world.passing(), [""; 0], "{}", said.err);
}
