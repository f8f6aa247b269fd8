//! What names programs in places of their own: submodules, and folders with many files.

use crate::support::{Prd, World};

/// With a submodule; its attempt does `act`.
fn world(act: &str) -> World {
    let script =
        format!("[default]\nsteps = [{{ run = '''{act}; echo a > a.txt''' }}, \"complete\"]\n");
    let world = World::scripted(&Prd::stories(1), &script);
    world.git(&["init", "-q", "../lib"]);
    world.write("../lib/file", "lib\n");
    world.git(&["-C", "../lib", "add", "."]);
    let who = ["-c", "user.name=T", "-c", "user.email=t@example.org"];
    world.git(&[&["-C", "../lib"][..], &who, &["commit", "-qm", "lib"]].concat());
    let local = ["-c", "protocol.file.allow=always"];
    world.git(&[&local[..], &["submodule", "--quiet", "add", "../lib", "lib"]].concat());
    world.git(&["commit", "-qm", "submodule"]);
    world
}

#[test]
fn what_a_submodules_configuration_and_hooks_name_is_put_back() {
    let world = world(
        "git config -f .git/modules/lib/config core.fsmonitor ../evil; \
         mkdir -p .git/modules/lib/hooks .git/modules/new; \
         echo evil > .git/modules/lib/hooks/post-checkout; \
         echo x > .git/modules/new/HEAD; git config -f .git/modules/new/config core.pager evil",
    );
    let before = world.read(".git/modules/lib/config");
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.read(".git/modules/lib/config"), before, "{}", said.err);
    for name in ["lib/hooks/post-checkout", "new/config"] {
        assert!(!world.path(".git/modules").join(name).exists(), "{name}: {}", said.err);
    }
    assert!(said.err.contains("restored git configuration or hooks"), "{}", said.err);
}

#[test]
fn a_submodule_may_come_and_go() {
    let update = "git -c protocol.file.allow=always submodule --quiet update --init";
    let remove = "rm -rf .git/modules/lib lib; mkdir lib";
    for (act, is_there) in [(update, true), (remove, false)] {
        let world = world(act);
        if is_there {
            world.git(&["submodule", "--quiet", "deinit", "-f", "lib"]);
            std::fs::remove_dir_all(world.path(".git/modules/lib")).unwrap();
        }
        let said = world.run(&[]);
        assert_eq!(said.code, 0, "{act}: {}", said.err);
        assert!(!said.err.contains(".git/modules"), "{act}: {}", said.err);
        assert_eq!(world.path(".git/modules/lib").exists(), is_there, "{act}");
        assert_eq!(world.status(), "", "{act}");
    }
}

#[test]
fn a_folder_of_settings_with_too_many_files_is_refused() {
    let world = World::scripted(&Prd::stories(1), "[default]\nsteps = [\"complete\"]\n");
    for number in 0..=2000 {
        world.write(&format!(".claude/skills/{number}.md"), "text\n");
    }
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "skills"]);
    let said = world.run(&[]);
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(said.err.contains(".claude/skills has more than 2000 files"), "{}", said.err);
}
