//! The known kinds of credentials.
//!
//! Only kinds with a prefix or context: plain hex or base64 cannot be told from a hash,
//! an id or an image.

use super::pattern::Pattern;
use super::{pem, shapes};

/// Longer starts are tried first.
pub const ALL: &[Pattern] = &[
    // Models.
    Pattern::open("anthropic-key", &["sk-ant-"], word_or_dash, 20),
    Pattern::open("openai-key", &["sk-proj-", "sk-svcacct-", "sk-admin-"], word_or_dash, 32),
    Pattern::open("openrouter-key", &["sk-or-v1-"], hex, 32),
    // The first form of OpenAI's, which others took over.
    Pattern::open("api-key", &["sk-"], alphanumeric, 32).alone(),
    Pattern::open("xai-key", &["xai-"], alphanumeric, 40),
    Pattern::open("groq-key", &["gsk_"], alphanumeric, 40),
    Pattern::open("perplexity-key", &["pplx-"], alphanumeric, 40),
    Pattern::open("huggingface-token", &["hf_"], alphanumeric, 30).alone(),
    Pattern::exact("replicate-token", &["r8_"], alphanumeric, 37).alone(),
    // Clouds.
    Pattern::exact("google-api-key", &["AIza"], word_or_dash, 35).alone(),
    Pattern::open("google-oauth-token", &["ya29."], word_or_dash, 20),
    Pattern::exact("google-client-secret", &["GOCSPX-"], word_or_dash, 28),
    Pattern::exact("aws-access-key", &["AKIA", "ASIA", "ABIA", "ACCA"], upper_or_digit, 16).alone(),
    Pattern::shape(
        "aws-secret-key",
        &["aws_secret_access_key", "AWS_SECRET_ACCESS_KEY", "SecretAccessKey", "secretAccessKey"],
        shapes::aws_secret,
    ),
    Pattern::shape("azure-storage-key", &["AccountKey="], shapes::azure_key),
    Pattern::open("digitalocean-token", &["dop_v1_", "doo_v1_", "dor_v1_"], hex, 40),
    Pattern::exact("databricks-token", &["dapi"], hex, 32).alone(),
    Pattern::open("tailscale-key", &["tskey-"], alphanumeric_or_dash, 20),
    Pattern::open("supabase-key", &["sbp_", "sb_secret_"], word_or_dash, 30),
    // Where code lives.
    Pattern::open("github-token", &["ghp_", "gho_", "ghu_", "ghs_", "ghr_"], alphanumeric, 36),
    Pattern::open("github-token", &["github_pat_"], word, 22),
    Pattern::open(
        "gitlab-token",
        &[
            "glpat-", "gldt-", "glrt-", "glptt-", "glcbt-", "glsoat-", "glft-", "glimt-", "gloas-",
            "glagent-",
        ],
        word_or_dash,
        20,
    ),
    Pattern::open("atlassian-token", &["ATATT3"], base64_any, 40),
    Pattern::exact("npm-token", &["npm_"], alphanumeric, 36),
    Pattern::open("pypi-token", &["pypi-AgE"], word_or_dash, 50),
    Pattern::shape("crates-io-token", &["\"cio", " cio", "=cio"], shapes::crates_io),
    Pattern::open("rubygems-key", &["rubygems_"], hex, 40),
    Pattern::open("docker-token", &["dckr_pat_", "dckr_oat_"], word_or_dash, 20),
    // Services.
    Pattern::open(
        "slack-token",
        &["xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxe-"],
        alphanumeric_or_dash,
        20,
    ),
    Pattern::open("slack-token", &["xoxe.xox", "xapp-1-"], alphanumeric_or_dash, 20),
    Pattern::open("slack-webhook", &["hooks.slack.com/services/"], path, 30),
    Pattern::open("discord-webhook", &["discord.com/api/webhooks/"], path, 40),
    Pattern::open(
        "stripe-key",
        &["sk_live_", "sk_test_", "rk_live_", "rk_test_"],
        alphanumeric,
        16,
    ),
    Pattern::open("webhook-secret", &["whsec_"], base64_any, 24),
    Pattern::shape("sendgrid-key", &["SG."], shapes::sendgrid),
    Pattern::open("shopify-token", &["shpat_", "shpss_", "shpca_", "shppa_"], hex, 32),
    Pattern::open("linear-key", &["lin_api_", "lin_oauth_"], alphanumeric, 32),
    Pattern::open("notion-token", &["ntn_"], alphanumeric, 40),
    Pattern::open("figma-token", &["figd_"], word_or_dash, 30),
    Pattern::open("sentry-token", &["sntrys_", "sntryu_"], base64_any, 40),
    Pattern::open("grafana-token", &["glsa_", "glc_"], base64_any, 32),
    Pattern::open("postman-key", &["PMAK-"], alphanumeric_or_dash, 40),
    Pattern::open("newrelic-key", &["NRAK-"], upper_or_digit, 20),
    Pattern::open("doppler-token", &["dp.pt.", "dp.st.", "dp.sa."], word_or_dash, 30),
    Pattern::open("vault-token", &["hvs.", "hvb."], word_or_dash, 24),
    Pattern::open("age-key", &["AGE-SECRET-KEY-1"], upper_or_digit, 50),
    // Shapes of all kinds of services.
    Pattern::shape("jwt", &["eyJ"], shapes::jwt),
    Pattern::shape("private-key", &["BEGIN "], pem::begin),
    Pattern::shape("bearer-token", &["Bearer ", "bearer ", "BEARER "], shapes::bearer),
    Pattern::shape("basic-auth", &["Basic ", "basic "], shapes::basic),
    // Some write `/` as `\/` in JSON.
    Pattern::shape("url-password", &["://", ":\\/\\/"], shapes::url_password),
];

pub fn alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

pub fn word_or_dash(byte: u8) -> bool {
    word(byte) || byte == b'-'
}

pub fn base64(byte: u8) -> bool {
    alphanumeric(byte) || matches!(byte, b'+' | b'/' | b'=')
}

fn word(byte: u8) -> bool {
    alphanumeric(byte) || byte == b'_'
}

fn alphanumeric_or_dash(byte: u8) -> bool {
    alphanumeric(byte) || byte == b'-'
}

fn upper_or_digit(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

fn hex(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'a'..=b'f')
}

/// Both alphabets.
fn base64_any(byte: u8) -> bool {
    base64(byte) || matches!(byte, b'-' | b'_')
}

fn path(byte: u8) -> bool {
    word_or_dash(byte) || byte == b'/'
}
