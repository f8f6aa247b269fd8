//! What an agent puts in the place of ralph's folders, of the backlog's and of other work trees':
//! nothing outside of the work tree changes, and nothing waits.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::support::world::Said;
use crate::support::{Prd, World};

/// Two stories; each attempt does `act` before its work. `$OUT` is a folder of the user's.
fn scripted(act: &str) -> World {
    let script = format!(
        "[default]\nsteps = [{{ run = '''OUT=$(cd .. && pwd)/outside\n{act}\necho w >> work.txt''' }}, \"complete\"]\n"
    );
    let world = World::scripted(&Prd::stories(2), &script);
    fs::create_dir(world.path("../outside")).unwrap();
    fs::set_permissions(world.path("../outside"), fs::Permissions::from_mode(0o755)).unwrap();
    world
}

fn run(world: &World) -> Said {
    world.run(&["--on-escalation", "skip"])
}

fn outside_is_untouched(world: &World, case: &str) {
    let outside = world.path("../outside");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "{case}");
    let mode = fs::metadata(&outside).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755, "{case}");
}

#[test]
fn other_versions_of_the_backlog_do_not_leave_the_repository() {
    let own = "mkdir -p .git/ralph/changed; ln -s $OUT .git/ralph/changed/${GIT_REFLOG_ACTION##* }";
    let all = "rm -rf .git/ralph/changed; ln -s $OUT .git/ralph/changed";
    for place in [own, all] {
        for edit in ["sed -i 's/it is done/nothing/' PRD.json", "echo '{' > PRD.json"] {
            let act = format!("{place}; {edit}");
            let world = scripted(&act);
            let said = run(&world);
            outside_is_untouched(&world, &format!("{act}\n{}", said.err));
            assert!(world.read("PRD.json").contains("it is done"), "{act}: {}", said.err);
        }
    }
}

/// The same, by the gates before the first attempt.
#[test]
fn nor_do_those_of_the_baseline() {
    let world = scripted("true");
    let gate = "OUT=$(cd .. && pwd)/outside; [ -e ../here ] || { touch ../here; \
                mkdir -p .git/ralph/changed; ln -s $OUT .git/ralph/changed/baseline; \
                sed -i 's/it is done/nothing/' PRD.json; }";
    world.write("ralph.toml", &format!("verify = ['''{gate}''']\n"));
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "gate"]);
    let said = run(&world);
    outside_is_untouched(&world, &said.err);
    assert!(world.path("../here").exists() && world.read("PRD.json").contains("it is done"));
}

/// Those of files that decide what gates run.
#[test]
fn nor_do_those_of_a_gates_script() {
    let world = scripted(
        "mkdir -p .git/ralph/changed; ln -s $OUT .git/ralph/changed/${GIT_REFLOG_ACTION##* }
         echo true > check.sh",
    );
    world.write("check.sh", "test -e work.txt\n");
    world.write("ralph.toml", "verify = [\"sh check.sh\"]\n");
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "gate"]);
    let said = run(&world);
    outside_is_untouched(&world, &said.err);
    assert_eq!(world.read("check.sh"), "test -e work.txt\n", "{}", said.err);
}

#[test]
fn a_backlog_is_not_written_in_a_folder_that_became_a_link() {
    for act in [
        "rm -rf docs; ln -s $OUT docs",
        "mv docs away; ln -s away docs",
        "rm -rf docs; echo file > docs",
        "rm -rf docs/sub; ln -s $OUT docs/sub",
        "cp docs/sub/PRD.json ../copy; rm -rf docs; mkdir ../other ../other/sub; \
         mv ../copy ../other/sub/PRD.json; ln -s ../other docs",
    ] {
        let world = scripted(&format!("[ -e ../here ] || {{ touch ../here; {act}; }}"));
        fs::create_dir_all(world.path("docs/sub")).unwrap();
        world.git(&["mv", "PRD.json", "docs/sub/PRD.json"]);
        world.git(&["commit", "-qm", "docs"]);
        let before = world.read("docs/sub/PRD.json");
        let said = world.run(&["docs/sub/PRD.json"]);
        outside_is_untouched(&world, &format!("{act}\n{}", said.err));
        assert_eq!(said.code, 0, "{act}\n{}", said.err);
        let folder = world.path("docs");
        assert!(!folder.is_symlink() && !folder.join("sub").is_symlink(), "{act}\n{}", said.err);
        let after = world.read("docs/sub/PRD.json");
        assert_eq!(after, before.replace("\"passes\": false", "\"passes\": true"), "{act}");
        assert_eq!(world.git(&["show", "HEAD:docs/sub/PRD.json"]), after, "{act}");
        let other = world.path("../other/sub/PRD.json");
        assert!(!other.exists() || fs::read_to_string(other).unwrap() == before, "{act}");
    }
}

/// A link of the human's on the way to it.
#[test]
fn a_link_on_the_way_to_the_backlog_leads_where_it_led() {
    let world = scripted("[ -e ../here ] || { touch ../here; ln -sfn $OUT plans; }");
    fs::create_dir_all(world.path("docs")).unwrap();
    std::os::unix::fs::symlink("docs", world.path("plans")).unwrap();
    world.git(&["mv", "PRD.json", "docs/PRD.json"]);
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "docs"]);
    let said = world.run(&["plans/PRD.json"]);
    outside_is_untouched(&world, &said.err);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(fs::read_link(world.path("plans")).unwrap().to_str(), Some("docs"));
    assert_eq!(world.read("docs/PRD.json").matches("\"passes\": true").count(), 2);
}

#[test]
fn a_pipe_in_the_place_of_another_work_trees_head_does_not_block() {
    let world = scripted("true");
    world.git(&["branch", "other"]);
    fs::create_dir_all(world.path(".git/worktrees/x")).unwrap();
    let fifo = world.path(".git/worktrees/x/HEAD");
    assert!(world.command("mkfifo").arg(fifo).status().unwrap().success());
    let said = world.run(&["--branch", "other"]);
    assert_eq!(said.code, 0, "{}", said.err);
}

#[test]
fn whatever_is_in_the_place_of_backlog_or_prompt_costs_an_iteration_at_most() {
    let socket = "python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])'";
    for name in ["PRD.json", "PROMPT.md"] {
        for make in ["mkfifo", socket, "ln -s /dev/zero", "ln -s /dev/tty", "truncate -s 10G"] {
            let act = format!("[ -e ../here ] || {{ touch ../here; rm {name}; {make} {name}; }}");
            let world = scripted(&act);
            world.write("PROMPT.md", "Be brief.\n");
            world.git(&["add", "."]);
            world.git(&["commit", "-qm", "prompt"]);
            let said = world.run(&[]);
            assert_eq!(said.code, 0, "{act}\n{}", said.err);
            assert_eq!(world.passing(), ["US-001", "US-002"], "{act}\n{}", said.err);
            assert_eq!(world.read("PROMPT.md"), "Be brief.\n", "{act}");
            assert_eq!(world.git(&["status", "--porcelain"]), "", "{act}\n{}", said.err);
        }
    }
}
