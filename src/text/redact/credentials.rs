//! The known kinds of credentials.
//!
//! Only kinds with a prefix or a name: plain hex or base64 cannot be told from a hash,
//! an id or an image.

use super::lookahead::{ByteClass, Lookahead, Match, REACH, SecretRange, SecretRest, base64};
use super::{named, pem};

/// A known kind of credential: how it begins, and what follows.
pub struct Credential {
    /// In the marker.
    pub kind: &'static str,
    /// Each of at least three bytes.
    pub starts: &'static [&'static str],
    /// Its start is also the end of ordinary words.
    pub stands_alone: bool,
    /// How many bytes of its start are before the secret itself; these stay.
    pub before: usize,
    /// What can follow a start of three bytes.
    pub next: ByteClass,
    pub follows: Follows,
}

pub enum Follows {
    /// Bytes of a class, at least so many, and no further ones after `most`.
    Run { class: ByteClass, least: usize, most: usize },
    /// Anything else, given the length of the start.
    Shape(Shape),
}

impl Credential {
    /// `length`: of the start, which is there.
    pub fn find(&self, ahead: Lookahead<'_>, length: usize, after_word: bool) -> Match {
        if self.stands_alone && after_word {
            return Ok(None);
        }
        match self.follows {
            Follows::Shape(find) => find(ahead, length),
            Follows::Run { class, least, most } => {
                let end = ahead.run(length, class, REACH.min(most.saturating_add(1)))?;
                let fits = (least..=most).contains(&(end - length));
                let is_one = fits && is_varied(ahead.part(length, end));
                Ok(is_one.then(|| SecretRange::with_run(self.before, length, end, class)))
            }
        }
    }
}

const ALPHANUMERIC: ByteClass = |byte| byte.is_ascii_alphanumeric();
const ALPHANUMERIC_OR_DASH: ByteClass = |byte| ALPHANUMERIC(byte) || byte == b'-';
const WORD: ByteClass = |byte| ALPHANUMERIC(byte) || byte == b'_';
const WORD_OR_DASH: ByteClass = |byte| WORD(byte) || byte == b'-';
const PATH: ByteClass = |byte| WORD_OR_DASH(byte) || byte == b'/';
const UPPER_OR_DIGIT: ByteClass = |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit();
const LOWER_OR_DIGIT: ByteClass = |byte| byte.is_ascii_lowercase() || byte.is_ascii_digit();
/// A third digit.
const DIGITS_IN_BASE64: ByteClass = |byte| matches!(byte, b'w'..=b'z' | b'0'..=b'5');
const HEX: ByteClass = |byte| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f');
/// Both alphabets.
const BASE64_ANY: ByteClass = |byte| base64(byte) || matches!(byte, b'-' | b'_');

/// Longer starts are tried first.
pub const ALL: &[Credential] = &[
    // Models.
    open("anthropic-key", &["sk-ant-"], WORD_OR_DASH, 20),
    open("openai-key", &["sk-proj-", "sk-svcacct-", "sk-admin-"], WORD_OR_DASH, 32),
    open("openrouter-key", &["sk-or-v1-"], HEX, 32),
    // The first form of OpenAI's, which others took over.
    alone(open("api-key", &["sk-"], ALPHANUMERIC, 32)),
    open("xai-key", &["xai-"], ALPHANUMERIC, 40),
    open("groq-key", &["gsk_"], ALPHANUMERIC, 40),
    open("perplexity-key", &["pplx-"], ALPHANUMERIC, 40),
    alone(open("huggingface-token", &["hf_"], ALPHANUMERIC, 30)),
    alone(exact("replicate-token", &["r8_"], ALPHANUMERIC, 37)),
    // Clouds.
    alone(exact("google-api-key", &["AIza"], WORD_OR_DASH, 35)),
    open("google-oauth-token", &["ya29."], WORD_OR_DASH, 20),
    exact("google-client-secret", &["GOCSPX-"], WORD_OR_DASH, 28),
    alone(exact("aws-access-key", &["AKIA", "ASIA", "ABIA", "ACCA"], UPPER_OR_DIGIT, 16)),
    shape("aws-secret-key", &["aws_secret_access_key", "AWS_SECRET_ACCESS_KEY"], aws_secret),
    shape("aws-secret-key", &["SecretAccessKey", "secretAccessKey"], aws_secret),
    behind(11, exact("azure-storage-key", &["AccountKey="], base64, 88)),
    open("digitalocean-token", &["dop_v1_", "doo_v1_", "dor_v1_"], HEX, 40),
    alone(exact("databricks-token", &["dapi"], HEX, 32)),
    open("tailscale-key", &["tskey-"], ALPHANUMERIC_OR_DASH, 20),
    open("supabase-key", &["sbp_", "sb_secret_"], WORD_OR_DASH, 30),
    // Where code lives.
    open("github-token", &["ghp_", "gho_", "ghu_", "ghs_", "ghr_"], ALPHANUMERIC, 36),
    open("github-token", &["github_pat_"], WORD, 22),
    open("gitlab-token", &["glpat-", "gldt-", "glrt-", "glptt-", "glcbt-"], WORD_OR_DASH, 20),
    open("gitlab-token", &["glsoat-", "glft-", "glimt-", "gloas-", "glagent-"], WORD_OR_DASH, 20),
    open("atlassian-token", &["ATATT3"], BASE64_ANY, 40),
    exact("npm-token", &["npm_"], ALPHANUMERIC, 36),
    open("pypi-token", &["pypi-AgE"], WORD_OR_DASH, 50),
    // `cio` alone is in too many words to be a start.
    behind(1, exact("crates-io-token", &["\"cio", " cio", "=cio"], ALPHANUMERIC, 32)),
    open("rubygems-key", &["rubygems_"], HEX, 40),
    open("docker-token", &["dckr_pat_", "dckr_oat_"], WORD_OR_DASH, 20),
    // Services.
    open("slack-token", &["xoxb-", "xoxp-", "xoxa-", "xoxr-"], ALPHANUMERIC_OR_DASH, 20),
    open("slack-token", &["xoxs-", "xoxe-", "xoxe.xox", "xapp-1-"], ALPHANUMERIC_OR_DASH, 20),
    open("slack-webhook", &["hooks.slack.com/services/"], PATH, 30),
    open("discord-webhook", DISCORD_WEBHOOKS, PATH, 40),
    open("stripe-key", &["sk_live_", "sk_test_", "rk_live_", "rk_test_"], ALPHANUMERIC, 16),
    open("webhook-secret", &["whsec_"], BASE64_ANY, 24),
    shape("sendgrid-key", &["SG."], sendgrid),
    open("shopify-token", &["shpat_", "shpss_", "shpca_", "shppa_"], HEX, 32),
    open("linear-key", &["lin_api_", "lin_oauth_"], ALPHANUMERIC, 32),
    open("notion-token", &["ntn_"], ALPHANUMERIC, 40),
    alone(exact("notion-token", &["secret_"], ALPHANUMERIC, 43)),
    alone(exact("twilio-key", TWILIO, HEX, 31)),
    alone(exact("mailgun-key", &["key-"], LOWER_OR_DIGIT, 32)),
    alone(then(DIGITS_IN_BASE64, shape("discord-token", DISCORD, discord))),
    behind(1, exact("telegram-token", &[":AA"], WORD_OR_DASH, 33)),
    open("figma-token", &["figd_"], WORD_OR_DASH, 30),
    open("sentry-token", &["sntrys_", "sntryu_"], BASE64_ANY, 40),
    open("grafana-token", &["glsa_", "glc_"], BASE64_ANY, 32),
    open("postman-key", &["PMAK-"], ALPHANUMERIC_OR_DASH, 40),
    open("newrelic-key", &["NRAK-"], UPPER_OR_DIGIT, 20),
    open("doppler-token", &["dp.pt.", "dp.st.", "dp.sa."], WORD_OR_DASH, 30),
    open("vault-token", &["hvs.", "hvb."], WORD_OR_DASH, 24),
    open("age-key", &["AGE-SECRET-KEY-1"], UPPER_OR_DIGIT, 50),
    // Shapes of all kinds of services.
    shape("jwt", &["eyJ"], jwt),
    shape("private-key", &["BEGIN "], pem::begin),
    shape("bearer-token", &["Bearer ", "bearer ", "BEARER "], bearer),
    shape("basic-auth", &["Basic ", "basic "], basic),
    // Some write `/` as `\/` in JSON.
    shape("url-password", &["://", ":\\/\\/"], url_password),
    // What only a name shows.
    shape("password", PASSWORD_NAMES, named::password),
    shape("secret", SECRET_NAMES, named::secret),
    shape("api-key", KEY_NAMES, named::assigned),
    shape("token", TOKEN_NAMES, named::assigned),
    shape("authorization", &["uthorization", "UTHORIZATION"], named::authorization),
    shape("secret", &["ENV ", "set -gx ", "setenv "], named::variable),
    shape("curl-password", CURL_USER, named::curl_user),
    shape("netrc-password", &["login ", "login\t"], named::netrc),
    shape("netrc-password", &["machine "], named::netrc_machine),
];

/// The ends of names, in the spellings of programs, settings and environments.
const PASSWORD_NAMES: Starts = &["assword", "ASSWORD", "asswd", "ASSWD", "assphrase", "ASSPHRASE"];
const SECRET_NAMES: Starts = &["ecret", "ECRET", "ecretKey", "ecret_key", "ECRET_KEY"];
#[rustfmt::skip]
const KEY_NAMES: Starts = &[
    "pi_key", "pi-key", "piKey", "pikey", "pi-Key", "pi_Key", "PI-KEY", "PI-Key", "PI-key", "PIKEY",
    "PIKey", "_KEY", "cryption_key", "cryption-key", "cryptionKey", "igning_key", "igning-key",
    "igningKey", "rivate_key", "rivate-key", "rivateKey", "ccess_key", "ccess-key", "ccessKey",
    "aster_key", "aster-key", "asterKey", "ccount_key", "ccountKey", "dmin_key", "dminKey",
    "ervice_key", "erviceKey", "uth_key", "uthKey", "ebhook_key", "ebhookKey", "icense_key",
    "icenseKey", "hared_key", "haredKey", "mac_key", "macKey",
];
#[rustfmt::skip]
const DISCORD_WEBHOOKS: Starts = &[
    "discord.com/api/webhooks/", "discordapp.com/api/webhooks/", "discord.com/api/v8/webhooks/",
    "discord.com/api/v9/webhooks/", "discord.com/api/v10/webhooks/",
];
/// Short options end with the one that counts.
#[rustfmt::skip]
const CURL_USER: Starts = &[
    " -u ", " -u", " -su", " -sSu", " -Ssu", " -ku", " -sku", " -fsSu", " -fsSLu", " -vu", " -iu", " -U ",
    "--user ", "--user=", "--proxy-user ", "--proxy-user=",
];
const TOKEN_NAMES: Starts =
    &["_TOKEN", "_token", "uthToken", "ccessToken", "efreshToken", "essionToken", "eployToken"];

/// The first of its hex digits belongs to the start.
#[rustfmt::skip]
const TWILIO: Starts = &[
    "SK0", "SK1", "SK2", "SK3", "SK4", "SK5", "SK6", "SK7",
    "SK8", "SK9", "SKa", "SKb", "SKc", "SKd", "SKe", "SKf",
];

/// An id of digits in base64, which does not begin with a zero.
#[rustfmt::skip]
const DISCORD: Starts = &[
    "MTA", "MTE", "MTI", "MTM", "MTQ", "MTU", "MTY", "MTc", "MTg", "MTk",
    "MjA", "MjE", "MjI", "MjM", "MjQ", "MjU", "MjY", "Mjc", "Mjg", "Mjk",
    "MzA", "MzE", "MzI", "MzM", "MzQ", "MzU", "MzY", "Mzc", "Mzg", "Mzk",
    "NDA", "NDE", "NDI", "NDM", "NDQ", "NDU", "NDY", "NDc", "NDg", "NDk",
    "NTA", "NTE", "NTI", "NTM", "NTQ", "NTU", "NTY", "NTc", "NTg", "NTk",
    "NjA", "NjE", "NjI", "NjM", "NjQ", "NjU", "NjY", "Njc", "Njg", "Njk",
    "NzA", "NzE", "NzI", "NzM", "NzQ", "NzU", "NzY", "Nzc", "Nzg", "Nzk",
    "ODA", "ODE", "ODI", "ODM", "ODQ", "ODU", "ODY", "ODc", "ODg", "ODk",
    "OTA", "OTE", "OTI", "OTM", "OTQ", "OTU", "OTY", "OTc", "OTg", "OTk",
];

type Starts = &'static [&'static str];
type Shape = fn(Lookahead<'_>, usize) -> Match;

/// At least so many bytes of the class.
const fn open(kind: &'static str, starts: Starts, class: ByteClass, least: usize) -> Credential {
    let follows = Follows::Run { class, least, most: usize::MAX };
    Credential { kind, starts, stands_alone: false, before: 0, next: class, follows }
}

/// Exactly so many bytes of the class.
const fn exact(kind: &'static str, starts: Starts, class: ByteClass, most: usize) -> Credential {
    let follows = Follows::Run { class, least: most, most };
    Credential { kind, starts, stands_alone: false, before: 0, next: class, follows }
}

const fn shape(kind: &'static str, starts: Starts, find: Shape) -> Credential {
    let follows = Follows::Shape(find);
    Credential { kind, starts, stands_alone: false, before: 0, next: |_| true, follows }
}

const fn then(next: ByteClass, credential: Credential) -> Credential {
    Credential { next, ..credential }
}

/// Its start is also the end of ordinary words.
const fn alone(credential: Credential) -> Credential {
    Credential { stands_alone: true, ..credential }
}

/// So many bytes of its start are before the secret itself.
const fn behind(before: usize, credential: Credential) -> Credential {
    Credential { before, ..credential }
}

/// `ghp_xxxxxxxx…` and `AKIA…EXAMPLE` in documentation are not secrets.
fn is_varied(bytes: &[u8]) -> bool {
    const EXAMPLE: &[u8] = b"EXAMPLE";
    if bytes.windows(EXAMPLE.len()).any(|part| part == EXAMPLE) {
        return false;
    }
    let seen = bytes.iter().fold(0u128, |seen, byte| seen | 1 << (byte & 127));
    seen.count_ones() > 5
}

/// Header and payload are JSON objects; the rest is part of it.
fn jwt(ahead: Lookahead<'_>, start: usize) -> Match {
    const PAYLOAD: usize = 12;
    let header = ahead.run(start, WORD_OR_DASH, REACH)?;
    if header - start < 7 || !ahead.has(header, b".eyJ")? {
        return Ok(None);
    }
    let payload = ahead.run(header + 1, WORD_OR_DASH, PAYLOAD)?;
    let is_one = payload - header > PAYLOAD;
    let rest = Some(SecretRest::Run(|byte| WORD_OR_DASH(byte) || byte == b'.'));
    Ok(is_one.then_some(SecretRange { from: 0, to: payload, rest }))
}

/// The word before it stays.
fn bearer(ahead: Lookahead<'_>, start: usize) -> Match {
    let token = |byte| base64(byte) || matches!(byte, b'-' | b'.' | b'_' | b'~');
    let end = ahead.run(start, token, REACH)?;
    let is_one = end - start >= 16 && is_no_word(ahead.part(start, end));
    Ok(is_one.then(|| SecretRange::with_run(start, start, end, token)))
}

/// `Bearer authentication-scheme` and `Bearer TokenProvider` are words.
fn is_no_word(bytes: &[u8]) -> bool {
    let rises =
        |pair: &&[u8]| matches!(pair, [a, b] if a.is_ascii_lowercase() && b.is_ascii_uppercase());
    bytes.iter().any(u8::is_ascii_digit) || bytes.windows(2).filter(rises).count() > 3
}

/// It must decode to `user:password`, so `Basic functionality` is not one.
fn basic(ahead: Lookahead<'_>, start: usize) -> Match {
    let end = ahead.run(start, base64, REACH)?;
    let meant = decoded(ahead.part(start, end));
    let is_one = end - start >= 8
        && meant.contains(&b':')
        && meant.iter().all(|byte| matches!(byte, b' '..=b'~'));
    Ok(is_one.then(|| SecretRange::with_run(start, start, end, base64)))
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Lenient about leftover bits.
fn decoded(text: &[u8]) -> Vec<u8> {
    let sextet = |byte: &u8| ALPHABET.iter().position(|known| known == byte);
    let sextets: Vec<usize> = text.iter().filter_map(sextet).collect();
    // Every four of them are three bytes; each byte has bits of two neighbors.
    let pairs = sextets.array_windows().zip((0..4).cycle()).filter(|(_, at)| *at < 3);
    pairs.map(|([a, b], at)| ((a << 6 | b) >> (4 - 2 * at)) as u8).collect()
}

/// `scheme://user:PASSWORD@host`; a variable or placeholder is not a password.
fn url_password(ahead: Lookahead<'_>, start: usize) -> Match {
    let user = |byte: u8| password_byte(byte) && byte != b':';
    let colon = ahead.run(start, user, 128)?;
    if ahead.at(colon)? != Some(b':') {
        return Ok(None);
    }
    let from = colon + 1;
    if ahead.is(from, |byte| b"$<{[*".contains(&byte))? {
        return Ok(None);
    }
    let to = ahead.run(from, password_byte, 256)?;
    let has_host = ahead.at(to)? == Some(b'@')
        && ahead.is(to + 1, |byte| byte.is_ascii_alphanumeric() || b"[$".contains(&byte))?;
    Ok((has_host && to - from >= 3).then(|| SecretRange::new(from, to)))
}

fn password_byte(byte: u8) -> bool {
    byte > b' ' && byte != 127 && !b"/?#@\"'<>\\`".contains(&byte)
}

/// Forty arbitrary bytes, recognized by the name before them.
fn aws_secret(ahead: Lookahead<'_>, start: usize) -> Match {
    let between = |byte: u8| b" =:\"'\\\t".contains(&byte);
    let from = ahead.run(start, between, 24)?;
    let to = ahead.run(from, base64, 41)?;
    let is_one = from > start && to - from == 40 && is_varied(ahead.part(from, to));
    Ok(is_one.then(|| SecretRange::new(from, to)))
}

/// `SG.` and two parts of known length.
fn sendgrid(ahead: Lookahead<'_>, start: usize) -> Match {
    let first = ahead.run(start, WORD_OR_DASH, 23)?;
    if first - start != 22 || ahead.at(first)? != Some(b'.') {
        return Ok(None);
    }
    let end = ahead.run(first + 1, WORD_OR_DASH, 44)?;
    Ok((end - first == 44).then(|| SecretRange::new(0, end)))
}

/// An id, a time and a signature.
fn discord(ahead: Lookahead<'_>, start: usize) -> Match {
    let id = ahead.run(start, WORD_OR_DASH, 28)?;
    let time = ahead.run(id + 1, WORD_OR_DASH, 7)?;
    let dots = [ahead.at(id)?, ahead.at(time)?];
    if !(23..=28).contains(&id) || time - id != 7 || dots != [Some(b'.'); 2] {
        return Ok(None);
    }
    let end = ahead.run(time + 1, WORD_OR_DASH, REACH)?;
    let is_one = end - time > 27 && is_varied(ahead.part(time, end));
    Ok(is_one.then(|| SecretRange::with_run(0, time + 1, end, WORD_OR_DASH)))
}
