//! Each kind of credential, and a text that only begins like it.

use std::collections::BTreeSet;

use super::super::credentials;
use super::named::named;
use super::{hex, mixed, redacted, row, upper};

/// The kind, an example, and a similar text that must be kept.
fn table() -> Vec<(&'static str, String, String)> {
    [prefixed(), named()].concat()
}

fn prefixed() -> Vec<(&'static str, String, String)> {
    let many = "x".repeat(60);
    vec![
        ("anthropic-key", format!("sk-ant-api03-{}", mixed(60)), "sk-ant-and-so-on".into()),
        (
            "openai-key",
            format!("sk-proj-{}", mixed(48)),
            "sk-admin-dashboard-container-left".into(),
        ),
        ("openai-key", format!("sk-svcacct-{}", mixed(48)), format!("sk-svcacct-{many}")),
        ("openrouter-key", format!("sk-or-v1-{}", hex(64)), "sk-or-v1-".into()),
        ("api-key", format!("sk-{}", mixed(48)), format!("task-{}", mixed(48))),
        ("api-key", format!("sk-{}", hex(32)), format!("risk-{}", hex(40))),
        ("xai-key", format!("xai-{}", mixed(80)), "xai-grok-4-fast-reasoning".into()),
        ("groq-key", format!("gsk_{}", mixed(52)), "gsk_kernel_module".into()),
        ("perplexity-key", format!("pplx-{}", mixed(48)), "pplx-70b-online".into()),
        ("huggingface-token", format!("hf_{}", mixed(34)), format!("half_{}", mixed(34))),
        ("replicate-token", format!("r8_{}", mixed(37)), format!("r8_{}", mixed(40))),
        ("google-api-key", format!("AIza{}", mixed(35)), format!("AIza{}", mixed(36))),
        ("google-oauth-token", format!("ya29.{}", mixed(60)), "ya29.txt".into()),
        ("google-client-secret", format!("GOCSPX-{}", mixed(28)), format!("GOCSPX-{}", mixed(12))),
        ("aws-access-key", format!("AKIA{}", upper(16)), format!("AKIA{}", upper(20))),
        ("aws-access-key", format!("ASIA{}", upper(16)), "ASIAPACIFIC".into()),
        (
            "aws-secret-key",
            format!("aws_secret_access_key = {}", mixed(40)),
            "aws_secret_access_key = ${AWS_SECRET_ACCESS_KEY_OF_THE_PROJECT}".into(),
        ),
        (
            "aws-secret-key",
            format!(r#"\"SecretAccessKey\": \"{}\""#, mixed(40)),
            format!(r#""SecretAccessKey of {}""#, hex(40)),
        ),
        (
            "azure-storage-key",
            format!("AccountKey={}==;Endpoint=x", mixed(86)),
            "AccountKey=<yours>".into(),
        ),
        ("digitalocean-token", format!("dop_v1_{}", hex(64)), "dop_v1_token".into()),
        ("databricks-token", format!("dapi{}", hex(32)), format!("soapdapi{}", hex(32))),
        ("tailscale-key", format!("tskey-auth-{}", mixed(30)), "tskey-auth".into()),
        ("supabase-key", format!("sbp_{}", hex(40)), "sbp_project".into()),
        ("github-token", format!("ghp_{}", mixed(36)), format!("ghp_{}", mixed(20))),
        ("github-token", format!("ghs_{}", mixed(36)), format!("ghs_{many}")),
        ("github-token", format!("github_pat_{}_{}", mixed(22), mixed(59)), "github_pat_*".into()),
        ("gitlab-token", format!("glpat-{}", mixed(20)), "glpat-your-token".into()),
        ("atlassian-token", format!("ATATT3{}", mixed(180)), "ATATT3 begins it".into()),
        ("npm-token", format!("npm_{}", mixed(36)), "npm_config_registry_of_all_packages".into()),
        ("pypi-token", format!("pypi-AgEIcHlwaS5vcmc{}", mixed(80)), "pypi-server".into()),
        ("crates-io-token", format!("token = \"cio{}\"", mixed(32)), format!("socio{}", mixed(32))),
        ("rubygems-key", format!("rubygems_{}", hex(48)), "rubygems_version".into()),
        ("docker-token", format!("dckr_pat_{}", mixed(27)), "dckr_pat_...".into()),
        (
            "slack-token",
            format!("xoxb-{}-{}", row("0123456789", 12), mixed(24)),
            "xoxb-your-token".into(),
        ),
        ("slack-token", format!("xapp-1-{}", mixed(60)), "xapp-level-tokens-of-your-app".into()),
        (
            "slack-webhook",
            format!("hooks.slack.com/services/T{}/B{}/{}", upper(8), upper(8), mixed(24)),
            "hooks.slack.com/services/T000/B000".into(),
        ),
        (
            "discord-webhook",
            format!("discord.com/api/webhooks/{}/{}", row("0123456789", 18), mixed(68)),
            "discord.com/api/webhooks/{id}".into(),
        ),
        ("stripe-key", format!("sk_live_{}", mixed(24)), "sk_test_mode_on".into()),
        ("stripe-key", format!("rk_test_{}", mixed(24)), format!("pk_live_{}", mixed(24))),
        ("webhook-secret", format!("whsec_{}", mixed(32)), "whsec_test".into()),
        ("sendgrid-key", format!("SG.{}.{}", mixed(22), mixed(43)), format!("SG.{}", mixed(22))),
        ("shopify-token", format!("shpat_{}", hex(32)), "shpat_token".into()),
        ("linear-key", format!("lin_api_{}", mixed(40)), "lin_api_client".into()),
        ("notion-token", format!("ntn_{}", mixed(46)), "ntn_id".into()),
        ("notion-token", format!("secret_{}", mixed(43)), format!("secret_{}", mixed(44))),
        ("twilio-key", format!("SK{}", hex(32)), format!("AC{}", hex(32))),
        ("twilio-key", format!("SKf{}", hex(31)), format!("TASK{}", hex(32))),
        ("mailgun-key", format!("key-{}", hex(32)), format!("pubkey-{}", hex(32))),
        (
            "discord-token",
            format!("MTAx{}.G{}.{}", mixed(22), mixed(5), mixed(38)),
            format!("MTAx{}.G{}.{}", mixed(22), mixed(8), mixed(38)),
        ),
        (
            "discord-token",
            format!("NzMy{}.X{}.{}", mixed(20), mixed(5), mixed(27)),
            format!("NzMy{}.X{}.{}", mixed(12), mixed(5), mixed(27)),
        ),
        (
            "discord-webhook",
            format!("discordapp.com/api/webhooks/{}/{}", row("0123456789", 18), mixed(68)),
            "discordapp.com/api/webhooks/{id}".into(),
        ),
        (
            "telegram-token",
            format!("123456789:AA{}", mixed(33)),
            format!("123456789:AA{}", mixed(40)),
        ),
        ("figma-token", format!("figd_{}", mixed(40)), "figd_file".into()),
        ("sentry-token", format!("sntrys_{}", mixed(60)), "sntrys_".into()),
        ("grafana-token", format!("glsa_{}_{}", mixed(32), hex(8)), "glsa_x".into()),
        ("postman-key", format!("PMAK-{}-{}", hex(24), hex(34)), "PMAK-example".into()),
        ("newrelic-key", format!("NRAK-{}", upper(27)), "NRAK-KEY".into()),
        ("doppler-token", format!("dp.pt.{}", mixed(43)), "dp.pt.x".into()),
        ("vault-token", format!("hvs.{}", mixed(90)), "hvs.example.org".into()),
        ("age-key", format!("AGE-SECRET-KEY-1{}", upper(58)), "AGE-SECRET-KEY-1…".into()),
        (
            "jwt",
            format!("eyJ{}.eyJ{}.{}", mixed(17), mixed(60), mixed(43)),
            format!("eyJ{}", mixed(60)),
        ),
        (
            "private-key",
            format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----", mixed(64)),
            format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----", mixed(64)),
        ),
        (
            "bearer-token",
            format!("Authorization: Bearer {}", mixed(32)),
            "Authorization: Bearer authentication-scheme".into(),
        ),
        (
            "bearer-token",
            format!("bearer {}", hex(40)),
            "Bearer $TOKEN, a bearer of bad news".into(),
        ),
        (
            "basic-auth",
            "Authorization: Basic dXNlcjpodW50ZXIyaHVudGVyMg==".into(),
            "Basic functionality and Basic authentication".into(),
        ),
        (
            "url-password",
            "postgres://me:hunter2-and-more@db.example.org:5432/x".into(),
            "http://localhost:3000/@vite/client https://me@example.org:8080/a:b@c".into(),
        ),
        (
            "url-password",
            "redis://:hunter2hunter2@localhost".into(),
            "https://$USER:$PASSWORD@host https://u:{p}@h https://u:<p>@h https://u:***@h".into(),
        ),
    ]
}

#[test]
fn every_kind_is_redacted_and_its_neighbor_is_kept() {
    for (kind, one, other) in table() {
        let found = redacted(&one);
        assert!(found.contains(&format!("[redacted:{kind}]")), "{kind}: {one} → {found}");
        assert_eq!(redacted(&other), other, "{kind}");
    }
}

#[test]
fn every_kind_is_redacted_inside_json_colors_and_quotes() {
    for (kind, one, _) in table() {
        let marker = format!("[redacted:{kind}]");
        let json = serde_json::Value::from(format!("first\n{one}\nlast")).to_string();
        let nested = serde_json::Value::from(json.clone()).to_string();
        for text in [
            json,
            nested,
            format!("TOKEN={one}"),
            format!("\x1b[32m{one}\x1b[0m"),
            format!("'{one}', {one}; {one}"),
        ] {
            let found = redacted(&text);
            assert!(found.contains(&marker), "{text} → {found}");
            assert!(!found.contains(&one), "{text} → {found}");
        }
    }
}

#[test]
fn json_stays_json_and_redacted_text_does_not_change() {
    for (kind, one, _) in table() {
        let event = serde_json::json!({"type": "assistant", "text": format!("a\n{one}\nb")});
        let found = redacted(&event.to_string());
        let parsed: serde_json::Value = serde_json::from_str(&found).unwrap();
        assert_eq!(parsed["type"], "assistant", "{kind}");
        assert_eq!(redacted(&found), found, "{kind}");
    }
}

#[test]
fn the_table_has_every_kind() {
    let tested: BTreeSet<&str> = table().iter().map(|(kind, ..)| *kind).collect();
    let known: BTreeSet<&str> = credentials::ALL.iter().map(|known| known.kind).collect();
    assert_eq!(tested, known);
    assert!(table().len() >= 100, "{} shapes", table().len());
    let starts = credentials::ALL.iter().flat_map(|known| known.starts);
    assert!(starts.clone().all(|start| start.len() >= super::super::KEY));
}

#[test]
fn only_the_secret_is_redacted() {
    let secret = mixed(40);
    for (text, left) in [
        (format!("Bearer {secret}, then"), "Bearer [redacted:bearer-token], then"),
        ("https://me:hunter2!@h/p".into(), "https://me:[redacted:url-password]@h/p"),
        (r"https:\/\/me:hunter2!@h\/p".into(), r"https:\/\/me:[redacted:url-password]@h\/p"),
        (
            format!("AWS_SECRET_ACCESS_KEY={secret}\n"),
            "AWS_SECRET_ACCESS_KEY=[redacted:aws-secret-key]\n",
        ),
        (format!("\"ghp_{secret}\""), "\"[redacted:github-token]\""),
    ] {
        assert_eq!(redacted(&text), left);
    }
}

#[test]
fn a_long_token_is_redacted_as_a_whole() {
    for length in [500, 512, 513, 5_000] {
        let text = format!("a sk-ant-{} b", mixed(length));
        assert_eq!(redacted(&text), "a [redacted:anthropic-key] b");
        let text = format!("a eyJ{}.eyJ{}.{} b", mixed(20), mixed(length), mixed(length));
        assert_eq!(redacted(&text), "a [redacted:jwt] b");
    }
}
