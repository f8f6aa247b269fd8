use super::*;
use crate::decide::samples::sight;
use crate::model::GateCommand;

/// One that fails if they are read.
const FILES: [(&str, &str); 28] = [
    ("xtask/src/main.rs", ""),
    ("check.sh", "test -e done\n"),
    (
        "scripts/a.sh",
        "#!/bin/sh\n. \"$(dirname \"$0\")/b.sh\"\n# don't\ncd \"$ROOT\" && sh web/check.sh\n",
    ),
    ("scripts/b.sh", "cat <<END\nwork.txt\nEND\nmake -C sub\n"),
    ("scripts/turns.sh", "sh scripts/turns.sh\n"),
    ("bin", "->scripts"),
    ("check", "->scripts/../check.sh"),
    ("out", "->/usr/bin/python3"),
    ("web/check.sh", ""),
    ("web/package.json", r#"{ "scripts": { "test": "node run.js", "start": "node serve.js" } }"#),
    ("web/run.js", "import './work.js'"),
    ("web/serve.js", ""),
    ("web/work.js", ""),
    ("sub/Makefile", "include more.mk\nall: ; @sh ../check.sh\nrun:\n\tpython3 work.py\n"),
    ("sub/more.mk", "all: own\nown:\n\t./own.sh\n"),
    ("sub/own.sh", "#!/usr/bin/perl\nsh check.sh"),
    ("sub/work.py", ""),
    ("checks.py", "import work"),
    ("suite/__main__.py", ""),
    ("c.py", ""),
    ("t.js", ""),
    ("setup.js", ""),
    ("work.txt", ""),
    ("work.sh", ""),
    ("go", ""),
    ("ci.mk", "all:\n\tsh check.sh\n"),
    ("justfile", "test: lint\n    sh check.sh\nlint:\n    sh c.sh\n"),
    ("c.sh", ""),
];

fn found(gate: &Gate) -> Vec<String> {
    let look = sight(&FILES);
    let files = GateFiles::of([gate], Sight { root: Path::new("/repo"), look: &look });
    files.scripts.keys().map(|path| path.display().to_string()).collect()
}

#[test]
fn a_gate_runs_its_scripts_and_looks_at_the_work() {
    for (command, dir, expected) in [
        ("./check.sh --fast work.txt", None, &["check.sh"][..]),
        ("CI=1 bash -eu check.sh work.txt; echo b", None, &["check.sh"]),
        ("test -e go && ./check.sh|| { go; }", None, &["check.sh", "go"]),
        ("./check.sh", Some("web"), &["web/check.sh"]),
        ("../check.sh", Some("web"), &["check.sh"]),
        ("/bin/true", None, &[]),
        ("../up; ./a\0b; .; sh -c; cd", None, &[]),
        (". ./check.sh && pytest", None, &["check.sh"]),
        ("cat work.txt; grep -qx one work.txt", None, &[]),
        ("cd web && ./check.sh", None, &["web/check.sh"]),
        ("cd web; cd .. && ./check.sh", None, &["check.sh"]),
        ("(cd web && ./check.sh) && ./c.sh", None, &["c.sh", "web/check.sh"]),
        ("cd && ./check.sh; cd /tmp && ./check.sh", None, &[]),
        ("cd \"$(git rev-parse --show-toplevel)\" && ./check.sh", Some("web"), &["check.sh"]),
        ("cd $(git rev-parse --show-toplevel) && ./check.sh", Some("web"), &["check.sh"]),
        ("bash -ec 'cd web; ./check.sh; . ./env'", None, &["web/check.sh"]),
        ("echo 'a; ./check.sh' \"; ./check.sh\" \\; 2>&1", None, &[]),
        ("env -u A timeout 5m ./check.sh", None, &["check.sh"]),
        ("timeout -k 5 60 sh check.sh", None, &["check.sh"]),
        ("if ! ./check.sh; then uv run c.py; fi", None, &["c.py", "check.sh"]),
        ("x=$(./check.sh)", None, &["check.sh"]),
        ("echo 'unfinished", None, &[]),
        ("bash -eo pipefail check.sh", None, &["check.sh"]),
        ("bash -o pipefail ./check.sh", None, &["check.sh"]),
        ("sh < check.sh", None, &["check.sh"]),
        ("sh <check.sh >work.txt 2>> work.txt", None, &["check.sh"]),
        ("sh /repo/check.sh", Some("web"), &["check.sh"]),
        ("sh \"$PWD/check.sh\"; sh $ANY/c.sh", None, &["c.sh", "check.sh"]),
        ("eval ./check.sh", None, &["check.sh"]),
        ("eval 'cd web && ./check.sh'", None, &["web/check.sh"]),
        ("xargs -a /dev/null -n 1 sh check.sh", None, &["check.sh"]),
        ("exec -a x env -i nice -n 5 stdbuf -o L ./check.sh", None, &["check.sh"]),
        ("/usr/bin/env bash check.sh # all", None, &["check.sh"]),
        ("./check", None, &["check", "check.sh"]),
        ("./out c.py", None, &["out"]),
        ("python3 -m checks", None, &["checks.py"]),
        ("python3.12 -m suite; python3 suite", None, &["suite/__main__.py"]),
        ("python3 -W error c.py", None, &["c.py"]),
        ("python3 -c 'open(1)' work.txt", None, &[]),
        ("python3 -u c.py work.txt", None, &["c.py"]),
        ("node --import ./setup.js --test t.js work.txt", None, &["setup.js", "t.js"]),
        ("deno run --allow-read t.js", None, &["t.js"]),
        ("coverage run --source x c.py", None, &["c.py"]),
        ("sh scripts/turns.sh", None, &["scripts/turns.sh"]),
        ("npm test", Some("web"), &["web/run.js"]),
        ("npm test --prefix web", None, &["web/run.js"]),
        ("make -f ci.mk", None, &["check.sh", "ci.mk"]),
        ("just", None, &["c.sh", "check.sh"]),
        ("cargo xtask ci", None, &["xtask/src/main.rs"]),
    ] {
        let gate = Gate { dir: dir.map(str::to_owned), ..Gate::shell(command) };
        assert_eq!(found(&gate), expected, "{command}");
    }
}

#[test]
fn what_a_script_runs_counts_too_also_behind_links() {
    let all = [
        "bin",
        "check.sh",
        "scripts/a.sh",
        "scripts/b.sh",
        "sub/more.mk",
        "sub/own.sh",
        "web/check.sh",
    ];
    assert_eq!(found(&Gate::shell("bin/a.sh")), all);
}

#[test]
fn a_program_is_looked_up_like_a_command_of_a_shell() {
    let of = |words: &[&str]| {
        let run = GateCommand::Program(words.iter().map(|word| (*word).to_owned()).collect());
        found(&Gate { run, dir: Some("web".into()), ..Gate::shell("x") })
    };
    assert_eq!(of(&["node", "--test", "run.js"]), ["web/run.js"]);
    assert_eq!(of(&["sh", "-c", "cd .. && ./check.sh; c"]), ["check.sh"]);
    assert_eq!(of(&["bash", "-euo", "pipefail", "check.sh"]), ["web/check.sh"]);
    assert!(of(&["--", "FOO=1"]).is_empty());
}

#[test]
fn a_gate_is_defined_by_the_files_of_its_tool() {
    let pytest = ["conftest.py", "pytest.ini", "pyproject.toml"];
    for (command, dir, expected) in [
        ("make test", None, &["GNUmakefile", "makefile", "Makefile"][..]),
        ("CI=1 /usr/bin/make -Csub test", Some("a"), &["a/sub/Makefile"]),
        ("stdbuf -oL make; nice -n 10 make", None, &["Makefile"]),
        ("cd web && npm test", None, &["web/package.json", "package.json"]),
        ("npm --prefix ./web run lint", None, &["web/package.json"]),
        ("npm test -w web", None, &["web/package.json", "package.json"]),
        ("pnpm --filter @a/web test", None, &["packages/web/package.json"]),
        ("yarn workspace web test", None, &["web/package.json"]),
        ("cd sub && just check", None, &["sub/justfile", "justfile"]),
        ("npx tsc && bash -c 'just x'", None, &["justfile"]),
        ("cargo xtask ci", Some("crates/a"), &["crates/a/.cargo/config.toml", ".cargo/config"]),
        ("cargo nextest run", None, &[".config/nextest.toml"]),
        ("cd tests/unit && pytest", None, &["tests/unit/conftest.py", "tests/conftest.py"]),
        ("uv run --with x pytest -q", None, &pytest),
        ("hatch run pytest", None, &pytest),
        ("poetry run pytest", None, &pytest),
        ("coverage run -m pytest", None, &pytest),
        ("python3.12 -m pytest || true", None, &pytest),
        ("tox", None, &["tox.ini", "conftest.py"]),
        ("pdm run test", None, &["pyproject.toml"]),
        ("python3 -m unittest", None, &["unittest.py", "unittest/__init__.py", "sitecustomize.py"]),
        ("python3 -m pytest -q", Some("a"), &["a/pytest.py", "a/pytest/__main__.py"]),
        ("yarn test", None, &[".yarnrc.yml", ".npmrc"]),
        ("cargo test", Some("a"), &["a/rust-toolchain.toml", "rust-toolchain"]),
    ] {
        let gate = Gate { dir: dir.map(str::to_owned), ..Gate::shell(command) };
        let files = GateFiles::of([&gate], Sight { root: Path::new("/repo"), look: &|_| None });
        let paths: Vec<_> = files.definitions.iter().flat_map(Definition::paths).collect();
        for name in expected {
            assert!(paths.contains(&PathBuf::from(name)), "{command}: {name} in {paths:?}");
        }
    }
    for command in ["cd /tmp && make", "make -C ../other", "echo make"] {
        let look = |_: &Path| None;
        let sight = Sight { root: Path::new("/repo"), look: &look };
        let files = GateFiles::of([&Gate::shell(command)], sight);
        assert!(files.definitions.is_empty(), "{command}");
    }
}
