//! Sizes as people write them: `256MB`, `1.5 GB`, `64MiB`.

const UNITS: [(&str, u64); 10] = [
    ("b", 1),
    ("", 1),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
];

/// In bytes; None when the text is no size.
pub fn parse(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end)?;
    let unit = unit.trim().to_ascii_lowercase();
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
    match number.parse::<u64>() {
        Ok(whole) => whole.checked_mul(*factor),
        Err(_) => fraction(number, *factor),
    }
}

/// Digits around one point: anything else that a float could be is no size.
fn fraction(number: &str, factor: u64) -> Option<u64> {
    let (whole, part) = number.split_once('.')?;
    let numerator: u64 = part.parse().ok()?;
    let denominator = 10_u64.checked_pow(u32::try_from(part.len()).ok()?)?;
    let whole = whole.parse::<u64>().ok()?.checked_mul(factor)?;
    whole.checked_add(
        u64::try_from(u128::from(numerator) * u128::from(factor) / u128::from(denominator)).ok()?,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_write_sizes_in_many_ways() {
        for (text, bytes) in [
            ("0", 0),
            ("1024", 1024),
            ("17 B", 17),
            ("256MB", 256_000_000),
            ("256 mb", 256_000_000),
            ("1.5GB", 1_500_000_000),
            ("0.25kB", 250),
            ("64MiB", 64 * 1024 * 1024),
            ("900TB", 900_000_000_000_000),
        ] {
            assert_eq!(parse(text), Some(bytes), "{text}");
        }
        for bad in ["", "MB", "-1MB", "1e3", "1.2.3GB", "1.GB", ".5GB", "5 potatoes", "99999999TB"]
        {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
