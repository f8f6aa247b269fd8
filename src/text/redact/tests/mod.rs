//! Secrets are put together at run time, so that scanners of repositories find none here.

mod environment;
mod kinds;
mod named;
mod neighbors;
mod private_keys;
mod streams;

use std::sync::Arc;

use super::{Redactor, SecretRules};

fn rules(environment: &[(&str, &str)]) -> Arc<SecretRules> {
    let owned = environment.iter().map(|(name, value)| ((*name).into(), (*value).into()));
    Arc::new(SecretRules::new(owned))
}

fn redacted(text: &str) -> String {
    rules(&[]).redact(text).into_owned()
}

/// A row of so many different bytes.
fn row(alphabet: &str, length: usize) -> String {
    alphabet.chars().cycle().take(length).collect()
}

fn mixed(length: usize) -> String {
    row("q7Rt2WxKp9ZsLd4Vf6NbHj3MgYc8TeUa5", length)
}

fn hex(length: usize) -> String {
    row("3f9a7c0e5b1d8264", length)
}

fn upper(length: usize) -> String {
    row("Q7RTWXKP4ZSLD2VFNBHJ3MGYC", length)
}

/// The output for these chunks.
fn in_chunks<'a>(rules: &Arc<SecretRules>, chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut redactor = Redactor::new(Arc::clone(rules));
    let mut out = Vec::new();
    for chunk in chunks {
        redactor.push(chunk, &mut out);
    }
    redactor.finish(&mut out);
    out
}
