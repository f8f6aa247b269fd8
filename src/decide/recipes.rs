//! The commands in a file that defines them: a Makefile, a justfile, the scripts of package.json.

use std::collections::BTreeSet;

use serde_json::Value;

/// Of a Makefile or a justfile, with whether it runs without the files.
const INCLUDES: [(&str, bool); 6] = [
    ("include", false),
    ("-include", true),
    ("sinclude", true),
    ("import", false),
    ("import?", true),
    ("mod?", true),
];

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Include {
    /// As the file names it; may have `*`.
    pub name: String,
    pub is_optional: bool,
}

/// The files that a Makefile or a justfile includes.
pub(super) fn includes(text: &str) -> Vec<Include> {
    let mut found = Vec::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let first = words.next().unwrap_or_default();
        let Some((_, is_optional)) = INCLUDES.iter().find(|(name, _)| *name == first) else {
            continue;
        };
        for word in words.filter(|word| *word != "$(wildcard") {
            let name = word.trim_matches(['\'', '"']);
            let is_whole = name.contains("$(");
            let name = if is_whole { name } else { name.trim_end_matches(')') };
            let is_pattern = name.contains('*');
            let is_optional = *is_optional || is_pattern;
            found.push(Include { name: name.to_owned(), is_optional });
            if first == "mod?" {
                let files = [format!("{name}.just"), format!("{name}/mod.just")];
                found.extend(files.map(|name| Include { name, is_optional }));
            }
        }
    }
    found
}

struct Rule<'a> {
    targets: Vec<&'a str>,
    needs: Vec<&'a str>,
    lines: Vec<&'a str>,
}

/// Of the targets that a command names, or of the first one, and of those that they need.
pub(super) fn of_rules(text: &str, words: &[String]) -> Vec<String> {
    let text = text.replace("\\\n", " ");
    let rules = rules(&text);
    let first = rules.iter().flat_map(|rule| &rule.targets).find(|name| !name.starts_with('.'));
    let is_target = |word: &&str| rules.iter().any(|rule| rule.targets.contains(word));
    let words = words.iter().skip(1).map(String::as_str);
    let mut goals: Vec<&str> = words.filter(is_target).collect();
    if goals.is_empty() {
        goals.extend(first);
    }
    let (mut seen, mut commands) = (BTreeSet::new(), Vec::new());
    while let Some(goal) = goals.pop() {
        if !seen.insert(goal) {
            continue;
        }
        for rule in rules.iter().filter(|rule| rule.targets.contains(&goal)) {
            goals.extend(&rule.needs);
            commands.extend(rule.lines.iter().map(|line| in_shell(line)));
        }
    }
    commands
}

fn rules(text: &str) -> Vec<Rule<'_>> {
    let mut rules: Vec<Rule<'_>> = Vec::new();
    for line in text.lines() {
        if line.starts_with(['\t', ' ']) {
            if let Some(rule) = rules.last_mut() {
                rule.lines.push(line.trim());
            }
            continue;
        }
        let Some((targets, rest)) = line.split_once(':') else { continue };
        let rest = rest.trim_start_matches(':');
        if line.starts_with('#') || targets.contains('=') || rest.starts_with('=') {
            continue;
        }
        let (needs, command) = rest.split_once(';').unwrap_or((rest, ""));
        rules.push(Rule {
            targets: targets.split_whitespace().collect(),
            needs: needs.split_whitespace().map(|word| word.trim_matches(['(', ')'])).collect(),
            lines: Vec::from_iter((!command.is_empty()).then_some(command)),
        });
    }
    rules
}

fn in_shell(line: &str) -> String {
    let line = line.trim_start_matches(['@', '-', '+', ' ']);
    line.replace("$(MAKE)", "make").replace("${MAKE}", "make").replace("$$", "$")
}

/// Of the scripts that a command names, with what runs before and after them.
pub(super) fn of_package(text: &str, words: &[String]) -> Vec<String> {
    let package: Value = serde_json::from_str(text).unwrap_or_default();
    let script = |name: String| package.get("scripts")?.get(name)?.as_str().map(str::to_owned);
    let names = words.iter().skip(1);
    let around = |name: &String| [name.clone(), format!("pre{name}"), format!("post{name}")];
    names.flat_map(around).filter_map(script).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn only_what_a_target_needs_is_run() {
        let text = "include a.mk b.mk\n-include c.mk\nX := a:b\n.PHONY: all\n\
                    all: build test # both\n\ntest: build\n\t@sh t.sh \\\n\t  now\n\t-$(MAKE) -C sub\n\
                    build:\n\tcc main.c; echo $$X\nrun: ; python3 main.py\n";
        let included = |text| {
            let all = includes(text).into_iter();
            all.map(|one| (one.name, one.is_optional)).collect::<Vec<_>>()
        };
        let expected = [("a.mk", false), ("b.mk", false), ("c.mk", true)];
        let owned = |all: &[(&str, bool)]| {
            all.iter().map(|(name, is)| ((*name).to_owned(), *is)).collect::<Vec<_>>()
        };
        assert_eq!(included(text), owned(&expected));
        let just = "import 'a.just'\nimport? \"b.just\"\ninclude $(wildcard c/*.mk)\n";
        let expected = [("a.just", false), ("b.just", true), ("c/*.mk", true)];
        assert_eq!(included(just), owned(&expected));
        let of = |command| of_rules(text, &words(command));
        assert_eq!(of("make -s build"), ["cc main.c; echo $X"]);
        let test = of("make -C sub test");
        assert!(test[0].starts_with("sh t.sh ") && test[0].ends_with(" now"), "{test:?}");
        assert_eq!(test[1..], ["make -C sub", "cc main.c; echo $X"]);
        assert_eq!(of("make").len(), 3, "{:?}", of("make"));
        assert_eq!(of("make run"), ["python3 main.py"]);
    }

    #[test]
    fn the_scripts_of_a_package_run_with_what_is_round_them() {
        let text = r#"{ "scripts": { "pretest": "a", "test": "b", "start": "c" } }"#;
        assert_eq!(of_package(text, &words("npm run test")), ["b", "a"]);
        assert_eq!(of_package(text, &words("npm ci")), [""; 0]);
        assert_eq!(of_package("{", &words("npm test")), [""; 0]);
    }
}
