//! Values of environment variables: which ones are secrets, and in which spellings.

use super::super::environment::secret;
use super::{redacted, rules};

#[test]
fn secret_names_are_recognized_by_whole_words() {
    let value = "hunter2hunter2";
    for name in [
        "ANTHROPIC_API_KEY",
        "GITHUB_TOKEN",
        "github_token",
        "KEY",
        "SECRET",
        "DB_PASSWORD",
        "PGPASSWORD",
        "MYSQL_PWD",
        "SMTP_PASS",
        "AWS_SECRET_ACCESS_KEY",
        "SOME_CREDENTIAL",
        "BASIC_AUTH",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "AUTHTOKEN",
        "npm_config_//registry.npmjs.org/:_authToken",
        "KEY_2",
        "TOKEN1",
        "SSH_PASSPHRASE",
    ] {
        assert_eq!(secret(name, value), Some(value), "{name}");
    }
    for name in [
        "KEYBOARD",
        "MONKEY",
        "AUTHOR",
        "GIT_AUTHOR_NAME",
        "PATH",
        "COMPASS",
        "BYPASS",
        "TOKENIZER",
        "MAX_OUTPUT_TOKENS",
        "PWD",
        "OLDPWD",
        "HOME",
        "SSH_AUTH_SOCK",
        "GIT_ASKPASS",
        "AWS_SHARED_CREDENTIALS_FILE",
        "AUTH_TYPE",
        "OAUTH_TOKEN_URL",
        "XAUTHORITY",
    ] {
        assert_eq!(secret(name, value), None, "{name}");
    }
}

#[test]
fn paths_and_common_words_are_not_secrets() {
    for value in ["hunter22", "correct horse", "12345678", "/q7Rt2WxKp9ZsLd4/f6NbHj3Mg", "päßwört1"]
    {
        assert_eq!(secret("TOKEN", value), Some(value));
    }
    assert_eq!(secret("TOKEN", " hunter22\n"), Some("hunter22"));
    for value in [
        "",
        "true",
        "hunter2",
        "päßwört",
        "changeme",
        "Password",
        "complete",
        "/home/me/.config/gcloud/application_default_credentials.json",
        "/tmp/ssh-XXXXabcd1234/agent.4711",
        "~/.netrc-of-mine",
    ] {
        assert_eq!(secret("TOKEN", value), None, "{value}");
    }
}

#[test]
fn a_value_inside_a_word_is_replaced_by_its_variables_name() {
    let rules = rules(&[("MY_TOKEN", "hunter2hunter2"), ("EDITOR", "an-editor-of-mine")]);
    assert_eq!(
        rules.redact("xhunter2hunter2y an-editor-of-mine"),
        "x[redacted:MY_TOKEN]y an-editor-of-mine"
    );
    assert_eq!(redacted("hunter2hunter2"), "hunter2hunter2");
}

#[test]
fn the_longer_of_two_values_is_redacted() {
    let rules = rules(&[("A_TOKEN", "hunter2hunter2"), ("B_TOKEN", "hunter2hunter2-and-more")]);
    assert_eq!(
        rules.redact("hunter2hunter2-and-more hunter2hunter2-and"),
        "[redacted:B_TOKEN] [redacted:A_TOKEN]-and"
    );
}

#[test]
fn every_spelling_of_a_value_is_found() {
    let value = "a\"b\\c/d<é>\n\t漢🦀";
    let rules = rules(&[("MY_SECRET", value)]);
    let json = serde_json::Value::from(value).to_string();
    for text in [
        value.to_owned(),
        serde_json::Value::from(json.clone()).to_string(),
        json,
        r#""a\"b\\c/d<\u00e9>\n\t\u6f22\ud83e\udd80""#.to_owned(),
        r#""a\"b\\c\/d<\u00e9>\n\t\u6f22\ud83e\udd80""#.to_owned(),
        r#""a\"b\\c/d\u003cé\u003e\n\t漢🦀""#.to_owned(),
        "a%22b%5Cc%2Fd%3C%C3%A9%3E%0A%09%E6%BC%A2%F0%9F%A6%80".to_owned(),
    ] {
        let found = rules.redact(&text).into_owned();
        assert!(found.contains("[redacted:MY_SECRET]"), "{text} → {found}");
        assert!(!found.contains('b') && !found.contains("6f22"), "{text} → {found}");
    }
}
