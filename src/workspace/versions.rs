//! Versions of a file that are told apart by their content.

use git2::{MergeFileInput, MergeFileOptions, merge_file};

use super::Result;
use super::error::GitContext;

/// The change from `before` to `changed`, made in what is there `now`. None: they conflict.
pub fn with_change(before: &[u8], changed: &[u8], now: &[u8]) -> Result<Option<Vec<u8>>> {
    if now == before || now == changed {
        return Ok(Some(changed.to_vec()));
    }
    let [mut base, mut theirs, mut ours] = [(); 3].map(|()| MergeFileInput::new());
    let (base, theirs) = (base.content(before), theirs.content(changed));
    let mut options = MergeFileOptions::new();
    let merged = merge_file(base, ours.content(now), theirs, Some(&mut options));
    let merged = merged.doing("merge two versions of a file")?;
    Ok(merged.is_automergeable().then(|| merged.content().to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_made_in_what_is_there_now_unless_they_conflict() {
        let before = b"1\n2\n3\n4\n5\n";
        for (changed, now, made) in [
            (&b"1\n2\n3\n4\nx\n"[..], &before[..], Some(&b"1\n2\n3\n4\nx\n"[..])),
            (b"1\n2\n3\n4\nx\n", b"1\n2\n3\n4\nx\n", Some(b"1\n2\n3\n4\nx\n")),
            (b"1\n2\n3\n4\nx\n", b"y\n2\n3\n4\n5\n", Some(b"y\n2\n3\n4\nx\n")),
            (b"1\n2\n3\n4\nx\n", b"1\n2\n3\n4\ny\n", None),
        ] {
            assert_eq!(with_change(before, changed, now).unwrap().as_deref(), made);
        }
    }
}
