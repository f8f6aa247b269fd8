//! The commands that agents' settings name: hooks, helpers, servers of tools.

use serde_json::Value;

/// Those of the settings whose commands an agent runs by itself.
const FILES: [&str; 14] = [
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".mcp.json",
    ".cursor/hooks.json",
    ".cursor/mcp.json",
    ".gemini/settings.json",
    ".qwen/settings.json",
    ".vscode/mcp.json",
    ".github/mcp.json",
    ".amp/settings.json",
    ".kiro/settings/mcp.json",
    "opencode.json",
    ".crush.json",
    "crush.json",
];
const COMMAND: &str = "command";
const ARGS: &str = "args";
/// Keys with a command as their value, and the end of others.
const HELPERS: [&str; 2] = ["awsAuthRefresh", "awsCredentialExport"];
const HELPER: &str = "Helper";

/// Files of a work tree, from its root.
pub fn files_with_commands() -> impl Iterator<Item = &'static str> {
    FILES.into_iter()
}

/// As texts for a shell. What is no JSON has none.
pub fn named_commands(settings: &str) -> Vec<String> {
    let mut found = Vec::new();
    if let Ok(settings) = serde_json::from_str(settings) {
        collect(&settings, &mut found);
    }
    found
}

fn collect(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| collect(value, found)),
        Value::Object(fields) => {
            for (name, value) in fields {
                let is_helper = HELPERS.contains(&name.as_str()) || name.ends_with(HELPER);
                match value {
                    Value::String(text) if name == COMMAND => {
                        let args = words(fields.get(ARGS));
                        found.push(format!("{text} {}", quoted(&args)));
                    }
                    Value::String(text) if is_helper => found.push(text.clone()),
                    Value::Array(_) if name == COMMAND => found.push(quoted(&words(Some(value)))),
                    _ => collect(value, found),
                }
            }
        }
        _ => {}
    }
}

fn words(value: Option<&Value>) -> Vec<&str> {
    let values = value.and_then(Value::as_array).into_iter().flatten();
    values.filter_map(Value::as_str).collect()
}

/// Variables keep their meaning.
fn quoted(words: &[&str]) -> String {
    let quoted = words.iter().map(|word| match word.starts_with('$') {
        true => (*word).to_owned(),
        false => shlex::try_quote(word).map(Into::into).unwrap_or_default(),
    });
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_wherever_settings_have_them() {
        let settings = r#"{
            "apiKeyHelper": "bin/key.sh",
            "awsAuthRefresh": "bin/aws",
            "model": "opus",
            "env": { "A": "sh no.sh" },
            "hooks": { "PreToolUse": [{ "matcher": "Bash", "hooks": [
                { "type": "command", "command": "sh \"$CLAUDE_PROJECT_DIR\"/tools/hook.sh" }
            ] }] },
            "mcpServers": { "own": { "command": "node", "args": ["tools/my server.js", "-v"] } },
            "mcp": { "other": { "command": ["python3", "serve.py"] } }
        }"#;
        let expected = [
            "bin/key.sh",
            "bin/aws",
            "sh \"$CLAUDE_PROJECT_DIR\"/tools/hook.sh ",
            "python3 serve.py",
            "node 'tools/my server.js' -v",
        ];
        let mut found = named_commands(settings);
        found.sort();
        let mut expected = expected.map(str::to_owned);
        expected.sort();
        assert_eq!(found, expected);
        assert_eq!(named_commands("no JSON"), [""; 0]);
    }
}
