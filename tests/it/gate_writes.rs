//! What gates leave behind is neither the user's nor the story's.

use ralph::model::{Event, Untrusted, Violation};

use crate::hostile::kill_when_here;
use crate::support::world::Said;
use crate::support::{Prd, World};

const WORK: &str =
    "[default]\nsteps = [{ run = \"echo work > $RALPH_STORY.txt\" }, \"complete\"]\n";

/// With the user's own files, uncommitted and untracked.
fn world(stories: usize, script: &str, settings: &str) -> World {
    let world = World::scripted(&Prd::stories(stories), script);
    world.write("ralph.toml", settings);
    world.write("old.txt", "old\n");
    world.write("tracked.txt", "committed\n");
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "settings"]);
    world.write("tracked.txt", "edited by the user\n");
    world.write("mine.txt", "not in git\n");
    world
}

fn run(world: &World) -> Said {
    let said = world.run(&["--allow-dirty"]);
    assert_eq!(world.read("tracked.txt"), "edited by the user\n", "{}", said.err);
    assert_eq!(world.read("mine.txt"), "not in git\n", "{}", said.err);
    assert_eq!(world.git(&["branch", "--show-current"]), "work\n", "{}", said.err);
    said
}

/// The files that were put back, each time that it was told.
fn written(world: &World) -> Vec<(Untrusted, Vec<String>, String)> {
    let told = world.journal().into_iter().filter_map(|one| match one.event {
        Event::Repaired { after, violation: Violation::Written { paths, kept, .. }, .. } => {
            Some((after, paths, kept.unwrap_or_default()))
        }
        _ => None,
    });
    told.collect()
}

#[test]
fn what_gates_write_is_put_back_and_told_once() {
    let gate = "echo made > made.txt; echo over > tracked.txt; rm -f mine.txt; echo x >> old.txt";
    let settings = format!("verify = [\"{gate}\"]\n");
    let world = world(2, WORK, &settings);
    let said = run(&world);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(!world.path("made.txt").exists());
    assert_eq!(world.read("old.txt"), "old\n");
    for commit in ["HEAD", "HEAD~1"] {
        let files = world.git(&["show", "--name-only", "--format=", commit]);
        assert!(!files.contains("made") && !files.contains("old"), "{files}");
    }
    let told = written(&world);
    let [(Untrusted::Baseline, paths, kept)] = &told[..] else { panic!("{told:?}") };
    assert_eq!(paths[..], ["made.txt", "mine.txt", "old.txt", "tracked.txt"]);
    assert_eq!(world.git(&["show", &format!("{kept}:made.txt")]), "made\n");
    let line = "restored files that the baseline wrote: made.txt, mine.txt, old.txt, tracked.txt";
    assert_eq!(said.err.matches(line).count(), 1, "{}", said.err);
}

/// It may be the human's edit, made at the same moment.
#[test]
fn each_version_that_is_put_back_is_kept() {
    let gate = "test -e US-001.txt || exit 0; cat ../n 2>/dev/null > old.txt; echo n >> ../n";
    let world = world(3, WORK, &format!("verify = [\"{gate}\"]\n"));
    let said = run(&world);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.read("old.txt"), "old\n");
    let refs = world.git(&["for-each-ref", "--format=%(refname)", "refs/ralph/checkpoints"]);
    let versions = refs.lines().map(|name| world.git(&["show", &format!("{name}:old.txt")]));
    assert_eq!(versions.collect::<Vec<_>>(), ["", "n\n", "n\nn\n"]);
    assert_eq!(said.err.matches("restored files that the gates wrote: old.txt").count(), 1);
}

#[test]
fn a_gate_does_not_do_the_work_for_the_next_one() {
    let settings = "verify = [\"echo work > work.txt\", \"test -e work.txt\"]\n";
    let script = "[[story.US-001.attempts]]\nsteps = [{ write = \"a\", text = \"a\" }, \"complete\"]\n\
                  [[story.US-001.attempts]]\nsteps = [{ write = \"work.txt\", text = \"done\" }, \"complete\"]\n";
    let world = world(1, script, settings);
    let said = run(&world);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.git(&["show", "HEAD:work.txt"]), "done");
    assert_eq!(world.iteration_files("prompt.md").len(), 2, "{}", said.err);
}

#[test]
fn kept_patterns_ignored_files_and_new_lock_files_stay() {
    let gate = "echo g > generated.txt; mkdir -p deep/__snapshots__; echo s > deep/__snapshots__/a; \
                echo i > x.log; test -e Cargo.lock || echo l > Cargo.lock; echo n > not.txt";
    let settings =
        format!("verify = [\"{gate}\"]\nkeep = [\"generated.txt\", \"**/__snapshots__/**\"]\n");
    let world = world(1, WORK, &settings);
    world.write(".gitignore", "*.log\n");
    world.git(&["add", ".gitignore"]);
    world.git(&["commit", "-qm", "ignore"]);
    let said = run(&world);
    assert_eq!(said.code, 0, "{}", said.err);
    let files = world.git(&["show", "--name-only", "--format=", "HEAD"]);
    let work = ["Cargo.lock", "PRD.json", "US-001.txt", "deep/__snapshots__/a", "generated.txt"];
    assert_eq!(files.lines().collect::<Vec<_>>(), work);
    assert_eq!(world.read("x.log"), "i\n");
    assert!(!world.path("not.txt").exists());
}

#[test]
fn what_a_fixing_gate_changes_is_committed_with_the_story() {
    let fix = "printf 'formatted\\\\n' > US-001.txt; echo over > mine.txt; echo new > new.txt";
    let settings = format!(
        "verify = [\"echo no > no.txt\", {{ run = \"{fix}\", fix = true }}, \
         \"grep -q formatted US-001.txt && ! test -e no.txt\"]\n"
    );
    let script =
        "[default]\nsteps = [{ write = \"US-001.txt\", text = \"raw\\n\" }, \"complete\"]\n";
    let world = world(1, script, &settings);
    let said = run(&world);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.git(&["show", "HEAD:US-001.txt"]), "formatted\n");
    let files = world.git(&["show", "--name-only", "--format=", "HEAD"]);
    assert_eq!(files, "PRD.json\nUS-001.txt\nnew.txt\n");
}

#[test]
fn a_gate_that_undoes_the_work_fails_and_the_work_is_there_again() {
    for undo in [
        "git checkout -q -f . && git clean -fdq",
        "git stash -qu",
        "git add -A && git reset -q --hard",
        "rm -f US-001.txt",
        "git add -A && git commit -qm all && git reset -q --hard HEAD~1",
        "git add -A && git checkout -qf --orphan none && git rm -rqf .",
    ] {
        let once = format!("test -e ../undone || (touch ../undone; {undo})");
        let settings = format!("verify = [\"test -e US-001.txt || exit 0; {once}\"]\n");
        let world = world(1, WORK, &settings);
        let said = run(&world);
        assert_eq!(said.code, 0, "{undo}: {}", said.err);
        let told = "undid the story's work in ";
        assert!(said.err.contains(told), "{undo}: {}", said.err);
        assert_eq!(world.prompt(2).matches(told).count(), 1, "{undo}");
        let files = world.git(&["show", "--name-only", "--format=", "HEAD"]);
        assert_eq!(files, "PRD.json\nUS-001.txt\n", "{undo}");
        assert_eq!(world.subjects()[1], "settings", "{undo}");
    }
}

#[test]
fn what_gates_change_besides_the_files_is_put_back() {
    let act = "test -e US-001.txt || exit 0; echo evil > .git/hooks/pre-commit; echo verify = [] > ralph.toml; \
               mkdir -p .claude; echo {} > .claude/settings.json; git commit -qm sneaky --allow-empty";
    let settings = format!("verify = [\"{act}\"]\n");
    let world = world(1, WORK, &settings);
    let said = run(&world);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(!world.path(".git/hooks/pre-commit").exists());
    assert!(!world.path(".claude/settings.json").exists());
    assert_eq!(world.read("ralph.toml"), settings);
    assert_eq!(world.subjects(), ["US-001: Story 1", "settings", "backlog", "first"]);
    for told in [
        "restored git configuration or hooks that the gates changed: .git/hooks/pre-commit",
        "restored ralph's settings that the gates changed: ralph.toml",
        "the gates changed the run's branch; branch and files are restored",
    ] {
        assert!(said.err.contains(told), "{told}: {}", said.err);
    }
}

#[test]
fn marks_that_the_baseline_or_a_gate_sets_are_reverted() {
    for when in ["test -z \"$RALPH_STORY\"", "test -n \"$RALPH_STORY\""] {
        let mark = "sed -i 's/\"passes\": false/\"passes\": true/' PRD.json";
        let script = "[default]\nsteps = [{ run = \"echo lie > lie.txt\" }, \"complete\"]\n";
        let gate =
            format!("if {when}; then {mark}; fi; test -z \"$RALPH_STORY\" || test -e work.txt");
        let settings = format!(
            "verify = [{{ run = \"\"\"{gate}\"\"\", each_story = false }}]\nmax_attempts = 1\n"
        );
        let world = world(2, script, &settings);
        let said = run(&world);
        assert_eq!(said.code, 4, "{when}: {}", said.err);
        assert_eq!(world.passing(), [""; 0], "{when}");
        assert!(said.err.contains("reverted the marks of US-001"), "{when}: {}", said.err);
    }
}

#[test]
fn what_a_gate_wrote_before_its_driver_was_killed_goes_too() {
    let act = "test -e US-001.txt || exit 0; test -e ../here && exit 0; echo made > made.txt; \
               rm mine.txt US-001.txt; echo evil > .git/hooks/pre-commit; echo y > ../here; sleep 600";
    let world = world(1, WORK, &format!("verify = [\"{act}\"]\nallow_dirty = true\n"));
    kill_when_here(&world);
    assert!(world.path("made.txt").exists() && !world.path("mine.txt").exists());
    let said = run(&world);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(!world.path("made.txt").exists());
    assert!(!world.path(".git/hooks/pre-commit").exists());
    assert_eq!(written(&world).len(), 1, "{}", said.err);
    let files = world.git(&["show", "--name-only", "--format=", "HEAD"]);
    assert_eq!(files, "PRD.json\nUS-001.txt\n");
    assert_eq!(world.iteration_files("prompt.md").len(), 1, "the claim stands");
}

/// The attempt's work is a lie. The first gate makes it look done for the second one.
#[test]
fn each_gate_begins_with_what_the_attempt_left() {
    let fixed = "! grep -q broken one.txt";
    for (act, next) in [
        ("git reset -q --hard HEAD~1", fixed),
        ("git checkout -qf other", fixed),
        ("git commit -q --allow-empty -m a; echo fine > one.txt; git commit -qam b", fixed),
        ("echo true > check.local", "sh check.local"),
        ("echo work > .gitignore; echo w > work", "test -e work"),
        ("echo work >> .git/info/exclude; echo w > work", "test -e work"),
        ("git config core.worktree /", "git config core.worktree"),
        ("git tag -d v1", "! git rev-parse -q --verify v1"),
        ("sed -i 's/: false/: true/' PRD.json", "grep -q true PRD.json"),
        ("echo {} > PRD.json", "! grep -q US-001 PRD.json"),
    ] {
        let lie = "echo broken > one.txt; git commit -qam own; touch lie";
        let script = format!("[default]\nsteps = [{{ run = \"{lie}\" }}, \"complete\"]\n");
        let world = World::scripted(&Prd::stories(1), &script);
        let settings = format!(
            "verify = [\"\"\"test ! -e lie || {{ {act}; }}\"\"\", \"test ! -e lie || {{ {next}; }}\"]\n\
             max_attempts = 1\n"
        );
        for (name, text) in
            [("ralph.toml", settings.as_str()), ("one.txt", "fine\n"), (".gitignore", "*.local\n")]
        {
            world.write(name, text);
        }
        world.git(&["add", "."]);
        world.git(&["commit", "-qm", "settings"]);
        world.git(&["branch", "other"]);
        world.git(&["tag", "v1"]);
        world.write("check.local", "false\n");
        let said = world.run(&[]);
        assert_eq!(said.code, 4, "{act}: {}", said.err);
        assert_eq!(world.passing(), [""; 0], "{act}");
        assert_eq!(world.git(&["branch", "--show-current"]), "work\n", "{act}");
    }
}

#[test]
fn nothing_is_written_where_a_gate_leads_git() {
    let act = "test -e US-001.txt || exit 0; echo junk > letter; echo junk > old.txt; \
               git config core.worktree $PWD/../outside";
    let world = world(1, WORK, &format!("verify = [\"{act}\"]\n"));
    world.write("../outside/letter", "a letter\n");
    world.write("../outside/old.txt", "another\n");
    let said = run(&world);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.read("../outside/letter"), "a letter\n");
    assert_eq!(world.read("../outside/old.txt"), "another\n");
    assert_eq!(world.read("old.txt"), "old\n");
    assert!(!world.path("letter").exists());
}

#[test]
fn no_pattern_allows_a_gate_to_change_files_of_the_users() {
    let gate = "test -e US-001.txt || exit 0; rm mine.txt; echo over > tracked.txt; echo g > g.txt";
    let world = world(1, WORK, &format!("verify = [\"{gate}\"]\nkeep = [\"*.txt\"]\n"));
    let said = run(&world);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("gates wrote: mine.txt, tracked.txt"), "{}", said.err);
    let files = world.git(&["show", "--name-only", "--format=", "HEAD"]);
    assert_eq!(files, "PRD.json\nUS-001.txt\ng.txt\n");
}

/// Whether it may change files or not, and whether the story brought a file or took it away.
#[test]
fn a_gate_that_undoes_a_part_of_the_work_fails() {
    let work = "echo new > kept; echo new > one.txt; rm old.txt";
    let script = format!("[default]\nsteps = [{{ run = \"{work}\" }}, \"complete\"]\n");
    for (undo, what) in [
        ("git checkout -qf -- old.txt", "old.txt"),
        ("git checkout -qf -- one.txt; echo more >> kept", "one.txt"),
    ] {
        for fix in [true, false] {
            let once =
                format!("test ! -e kept || test -e ../undone || {{ touch ../undone; {undo}; }}");
            let gate = format!("{{ run = \"{once}\", fix = {fix} }}");
            let world = world(1, &script, &format!("verify = [{gate}]\n"));
            world.write("one.txt", "before\n");
            world.git(&["add", "one.txt"]);
            world.git(&["commit", "-qm", "one", "one.txt"]);
            let said = run(&world);
            assert_eq!(said.code, 0, "{undo} {fix}: {}", said.err);
            let told = format!("undid the story's work in {what}; it was restored");
            assert!(world.prompt(2).contains(&told), "{undo} {fix}: {}", said.err);
            assert!(!world.path("old.txt").exists(), "{undo} {fix}");
            assert_eq!(world.read("kept"), "new\n", "{undo} {fix}");
        }
    }
}

#[test]
fn what_a_fixing_gate_wrote_before_it_failed_is_put_back() {
    let gate = "{ run = \"echo junk > junk; test -e ok\", fix = true }";
    let script = "[[story.US-001.attempts]]\nsteps = [{ write = \"a\", text = \"a\" }, \"complete\"]\n\
                  [[story.US-001.attempts]]\nsteps = [{ run = \"test -e junk || touch ok\" }, \"complete\"]\n";
    let world =
        world(1, script, &format!("verify = [{gate}, \"test -e junk\"]\nmax_attempts = 2\n"));
    let said = run(&world);
    assert_eq!(said.code, 0, "{}", said.err);
    let files = world.git(&["show", "--name-only", "--format=", "HEAD"]);
    assert_eq!(files, "PRD.json\na\njunk\nok\n");
}

/// It runs code of the agent's, and makes the next gate and a protected file say what that likes.
#[test]
fn what_a_fixing_gate_changes_of_what_decides_about_the_claim_is_put_back() {
    let fix = "{ run = \"test ! -e fix.sh || . ./fix.sh\", fix = true }";
    for (what, fixes, text, closes) in [
        ("check.sh", "echo true > check.sh", "test -e one\n", false),
        ("Makefile", "echo check: > Makefile", "check:\n\ttest -e one\n", false),
        ("tests/a", "echo weak > tests/a; touch one", "strong\n", true),
        ("ralph.toml", "echo verify = [] > ralph.toml; touch one", "", true),
    ] {
        let script = format!(
            "[default]\nsteps = [{{ run = '''cat > fix.sh <<\"E\"\n{fixes}\nE''' }}, \"complete\"]\n"
        );
        let gate = if what == "Makefile" { "make check" } else { "sh check.sh" };
        let limits = "protect = [\"tests/**\"]\nmax_attempts = 1\n";
        let settings = format!("verify = [{fix}, \"{gate}\"]\n{limits}");
        let world = world(1, &script, &settings);
        for (name, text) in [
            ("check.sh", "test -e one\n"),
            ("Makefile", "check:\n\ttest -e one\n"),
            ("tests/a", "strong\n"),
        ] {
            world.write(name, text);
            world.git(&["add", name]);
        }
        world.git(&["commit", "-qm", "checks", "check.sh", "Makefile", "tests"]);
        let said = run(&world);
        let text = if what == "ralph.toml" { settings.as_str() } else { text };
        assert_eq!(world.read(what), text, "{what}: {}", said.err);
        assert_eq!(said.code == 0, closes, "{what}: {}", said.err);
        assert!(said.err.contains(&format!(": {what}")), "it says so: {}", said.err);
    }
}

/// No snapshot has it, but it does not stay.
#[test]
fn what_no_snapshot_can_have_is_moved_away() {
    let large = "truncate -s 1025M";
    let gate = format!(
        "test -e US-001.txt || exit 0; {large} old.txt; {large} new.txt; git init -q made; touch made/a"
    );
    let world = world(1, WORK, &format!("verify = [\"{gate}\"]\n"));
    world.git(&["init", "-q", "theirs"]);
    let users = std::fs::File::create(world.path("large.txt")).unwrap();
    users.set_len(1025 << 20).unwrap();
    let said = run(&world);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.read("old.txt"), "old\n");
    assert!(!world.path("new.txt").exists());
    assert!(!world.path("made").exists());
    assert!(world.path("large.txt").exists() && world.path("theirs/.git").exists(), "the user's");
    let told = "restored files that the gates wrote: made, new.txt, old.txt";
    assert!(said.err.contains(told), "{}", said.err);
    let kept = world.path(".git/ralph/changed/replaced/old.txt");
    assert_eq!(kept.metadata().unwrap().len(), 1025 << 20);
}
