use std::process::Command;
use std::time::Duration;

use crate::workspace::GitError;

use super::sandbox::{Sandbox, close, try_close};

/// With a key of its own, and commits to be signed with it.
fn signing(passphrase: &str) -> Sandbox {
    let repo = Sandbox::new();
    let key = repo.beside("key");
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-C", "tess", "-N", passphrase, "-f"])
        .arg(&key)
        .status()
        .unwrap();
    assert!(made.success());
    let public = std::fs::read_to_string(repo.beside("key.pub")).unwrap();
    let signers = repo.beside("signers");
    std::fs::write(&signers, format!("tess@example.com {public}")).unwrap();
    for (name, value) in [
        ("gpg.format", "ssh"),
        ("commit.gpgsign", "true"),
        ("user.signingkey", key.to_str().unwrap()),
        ("gpg.ssh.allowedSignersFile", signers.to_str().unwrap()),
    ] {
        repo.git(["config", name, value]);
    }
    repo
}

#[test]
fn a_commit_on_the_branch_is_signed_and_verifies() {
    let repo = signing("");
    let tree = repo.open();
    assert!(tree.try_signing().unwrap());
    let base = tree.base().unwrap();
    repo.write("a", "a1\n");
    let closed = close(&tree, &base);
    assert_eq!(closed.next_base, None, "a human may have edited files while it was signed");
    assert_eq!(repo.git(["log", "-1", "--format=%G? %GS %s"]), "G tess@example.com close\n");
    repo.git(["verify-commit", "HEAD"]);
    repo.assert_sound();
}

#[test]
fn nothing_is_signed_unless_it_is_asked_for() {
    let repo = signing("");
    repo.git(["config", "commit.gpgsign", "false"]);
    let tree = repo.open();
    assert!(!tree.try_signing().unwrap());
    close(&tree, &tree.base().unwrap());
    assert_eq!(repo.git(["log", "-1", "--format=%G?"]), "N\n");
}

#[test]
fn the_choice_is_made_before_any_agent_runs() {
    let repo = signing("");
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.git(["config", "commit.gpgsign", "false"]);
    repo.git(["config", "gpg.ssh.program", "/bin/false"]);
    close(&tree, &base);
    repo.git(["config", "--unset", "gpg.ssh.program"]);
    assert_eq!(repo.git(["log", "-1", "--format=%G?"]), "G\n");
}

#[test]
fn a_key_that_wants_a_passphrase_is_refused_at_once_and_no_commit_is_made() {
    let repo = signing("a passphrase");
    let tree = repo.open();
    let text = tree.try_signing().unwrap_err().to_string();
    assert!(text.contains("`ssh-keygen` could not sign") && text.contains("ssh-add"), "{text}");
    let (head, base) = (repo.head(), tree.base().unwrap());
    repo.write("a", "a1\n");
    assert!(matches!(try_close(&tree, &base), Err(GitError::CannotSign { .. })));
    assert_eq!((repo.head(), repo.status()), (head, " M a\n".to_owned()));
}

#[test]
fn a_helper_that_does_not_answer_has_its_time() {
    let repo = signing("");
    let program = repo.beside("slow");
    let pid = repo.beside("pid");
    std::fs::write(&program, format!("#!/bin/sh\necho $$ > {}\nsleep 1000\n", pid.display()))
        .unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, mode).unwrap();
    repo.git(["config", "gpg.ssh.program", program.to_str().unwrap()]);
    let mut tree = repo.open();
    tree.signer.as_mut().unwrap().patience = Duration::from_secs(2);
    let text = tree.try_signing().unwrap_err().to_string();
    assert!(text.contains("did not finish"), "{text}");
    let pid = std::fs::read_to_string(&pid).unwrap();
    assert!(!std::path::Path::new("/proc").join(pid.trim()).exists(), "{pid} is alive");
}

#[test]
fn what_cannot_be_asked_of_a_program_is_said() {
    let repo = signing("");
    for (name, value, told) in [
        ("gpg.ssh.program", "/no/such/program", "No such file"),
        ("gpg.ssh.program", "/bin/true", "no signature"),
        ("gpg.format", "seal", "`gpg.format` is `seal`"),
    ] {
        repo.git(["config", name, value]);
        let text = repo.open().try_signing().unwrap_err().to_string();
        assert!(text.contains(told) && text.contains("commit.gpgsign false"), "{text}");
    }
    repo.git(["config", "gpg.format", "ssh"]);
    repo.git(["config", "--unset", "user.signingkey"]);
    let text = repo.open().try_signing().unwrap_err().to_string();
    assert!(text.contains("`user.signingkey` is not set"), "{text}");
}
