//! Files that git's configuration or an agent's settings name, and that say what runs next.

use std::fs;

use crate::support::world::{Runs, Said};
use crate::support::{Prd, World};

use super::hostile::kill_when_here;

const WORK: &str = "{ write = \"work.txt\", text = \"work\\n\" }, \"complete\"";

/// `files` are committed, then `setup` is done. The first attempt does `act`.
fn world(files: &[(&str, &str)], setup: &str, act: &str, then: &str) -> World {
    let script = format!(
        "[[story.US-001.attempts]]\nsteps = [{{ run = '''{act}''' }}, {then}]\n\
         [default]\nsteps = [{WORK}]\n"
    );
    let world = World::scripted(&Prd::stories(1), &script);
    for (name, text) in files {
        world.write(name, text);
    }
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "the user's"]);
    let done = world.command("sh").args(["-c", setup]).current_dir(world.path(".")).said();
    assert_eq!(done.code, 0, "{}", done.err);
    world
}

fn is_put_back(world: &World, said: &Said, path: &str, text: &str) {
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.read(path), text, "{}", said.err);
    let told = said.err.lines().any(|line| line.contains("restored git") && line.contains(path));
    assert!(told, "{path}: {}", said.err);
    assert!(!world.path("../ran").exists(), "the program ran: {}", said.err);
}

/// Nothing is committed until the human decides.
fn is_asked(world: &World, said: &Said, path: &str, text: &str) {
    assert_eq!(said.code, 4, "{}", said.err);
    assert_eq!(world.read(path), text, "{}", said.err);
    assert!(said.err.contains(path), "{}", said.err);
    let committed = world.git(&["show", &format!("HEAD:{path}")]);
    assert_eq!(committed, text, "{}", said.err);
}

const SIGN: &str = r#"printf '#!/bin/sh\ntouch %s\n' "$PWD/../ran" > ../sign; chmod +x ../sign
printf '[gpg]\n\tprogram = %s\n[commit]\n\tgpgsign = true\n' "$PWD/../sign" > NAME"#;

#[test]
fn a_file_that_the_configuration_includes_is_held() {
    for (name, setup) in [
        (".gitconfig", "git config include.path ../.gitconfig"),
        ("own.inc", "git config includeIf.gitdir:/.path ../.gitconfig"),
        ("absent.inc", "git config include.path ../absent.inc"),
    ] {
        let chained = "[include]\n\tpath = own.inc\n";
        let files = [(".gitconfig", chained), ("own.inc", "[a]\n\tb = c\n")];
        let act = SIGN.replace("NAME", name);
        for then in [WORK, "{ run = \"echo y > ../here\" }, \"hang\""] {
            let world = world(&files, setup, &act, then);
            if then != WORK {
                kill_when_here(&world);
                fs::remove_file(world.script()).unwrap();
            }
            let said = world.run(&[]);
            assert!(!world.path("../ran").exists(), "{name}: the program ran: {}", said.err);
            if name == "absent.inc" {
                assert_eq!(said.code, 0, "{}", said.err);
                assert!(!world.path(name).exists(), "{}", said.err);
            } else {
                let text = if name == ".gitconfig" { chained } else { "[a]\n\tb = c\n" };
                is_put_back(&world, &said, name, text);
            }
        }
    }
}

#[test]
fn programs_and_rules_of_the_work_tree_that_git_uses_are_held() {
    let script = "#!/bin/sh\nexit 1\n";
    for (path, setup) in [
        ("tools/sign.sh", "git config gpg.program ./tools/sign.sh"),
        ("tools/sign.sh", "git config filter.x.clean 'sh tools/sign.sh %f'"),
        ("tools/sign.sh", "git config alias.x '!sh tools/sign.sh'"),
        ("rules", "git config core.excludesFile rules"),
        ("rules", "git config core.attributesFile rules"),
    ] {
        let files = [("tools/sign.sh", script), ("rules", script)];
        let world = world(&files, setup, &format!("echo evil > {path}"), WORK);
        let said = world.run(&[]);
        is_put_back(&world, &said, path, script);
    }
}

#[test]
fn hooks_that_a_tool_made_are_put_back_and_hooks_of_the_project_are_asked_about() {
    let hook = "#!/bin/sh\nexit 0\n";
    let husky = "mkdir .husky/_; printf '#!/bin/sh\\nexit 0\\n' > .husky/_/pre-commit; \
                 git config core.hooksPath .husky/_";
    let files = [(".gitignore", ".husky/_\n"), (".husky/pre-commit", hook)];
    let one = world(&files, husky, "echo evil > .husky/_/pre-commit", WORK);
    let said = one.run(&[]);
    is_put_back(&one, &said, ".husky/_/pre-commit", hook);
    let other = world(&files, husky, "echo evil > .husky/pre-commit", WORK);
    let said = other.run(&[]);
    is_asked(&other, &said, ".husky/pre-commit", hook);
    // With what they run, and not all that is in their folder.
    let files =
        [("tools/pre-push", "sh tools/check.sh\n"), ("tools/check.sh", hook), ("tools/x", "")];
    let setup = "git config core.hooksPath tools";
    let third = world(&files, setup, "echo evil > tools/check.sh", WORK);
    let said = third.run(&[]);
    is_asked(&third, &said, "tools/check.sh", hook);
    let fourth = world(&files, setup, "echo more > tools/x", WORK);
    let said = fourth.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(fourth.git(&["show", "HEAD:tools/x"]), "more\n");
}

#[test]
fn scripts_that_agents_settings_run_are_asked_about() {
    let script = "exit 0\n";
    let hooks = r#"{ "hooks": { "Stop": [{ "hooks": [{ "type": "command",
        "command": "sh \"$CLAUDE_PROJECT_DIR\"/tools/hook.sh" }] }] } }"#;
    let server =
        r#"{ "mcpServers": { "own": { "command": "node", "args": ["tools/serve.js"] } } }"#;
    for path in ["tools/hook.sh", "tools/inner.sh", "tools/serve.js"] {
        let files = [
            (".claude/settings.json", hooks),
            (".mcp.json", server),
            ("tools/hook.sh", "sh tools/inner.sh\n"),
            ("tools/inner.sh", script),
            ("tools/serve.js", script),
        ];
        let before = files.iter().find(|(name, _)| *name == path).unwrap().1;
        let world = world(&files, "true", &format!("echo evil > {path}"), WORK);
        let said = world.run(&[]);
        is_asked(&world, &said, path, before);
    }
}
