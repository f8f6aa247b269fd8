//! Signed commits, where the user's git configuration asks for them.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use git2::{Commit, Config, Oid, Repository, Tree};

use super::WorkTree;
use super::error::{Doing, GitError, if_found};
use super::program::Helper;

/// A hardware key may want to be touched.
const PATIENCE: Duration = Duration::from_secs(30);
/// No passphrase can be asked for: nobody may be there, and a prompt would never end.
const ASKS_NOBODY: [(&str, Option<&str>); 3] =
    [("SSH_ASKPASS_REQUIRE", Some("force")), ("SSH_ASKPASS", Some("false")), ("GPG_TTY", None)];

/// As it is when the repository is opened: what an agent writes into the configuration later
/// changes nothing.
#[derive(Clone, Debug)]
pub(super) struct Signer {
    format: Format,
    program: OsString,
    key: Option<String>,
    pub(super) patience: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Format {
    OpenPgp,
    X509,
    Ssh,
    Unknown(String),
}

impl Signer {
    /// None: commits are not signed.
    pub fn of(repo: &Repository) -> Result<Option<Self>, GitError> {
        let config = repo.config().and_then(|mut config| config.snapshot());
        let config = config.doing("read the configuration")?;
        let wanted = if_found(config.get_bool("commit.gpgsign")).doing("read commit.gpgsign")?;
        if wanted != Some(true) {
            return Ok(None);
        }
        let format = match text(&config, "gpg.format").as_deref() {
            None | Some("openpgp") => Format::OpenPgp,
            Some("x509") => Format::X509,
            Some("ssh") => Format::Ssh,
            Some(other) => Format::Unknown(other.to_owned()),
        };
        let program = program(&config, &format);
        let key = text(&config, "user.signingkey");
        let key = key.or_else(|| committer(repo).filter(|_| format != Format::Ssh));
        let key = match key {
            Some(key) if format == Format::Ssh && !is_literal(&key) => {
                let path = config.get_path("user.signingkey").ok();
                path.map(|path| path.to_string_lossy().into_owned())
            }
            key => key,
        };
        Ok(Some(Self { format, program, key, patience: PATIENCE }))
    }

    fn sign(&self, content: &[u8], dir: &Path) -> Result<String, GitError> {
        let signature = match (&self.format, &self.key) {
            (Format::Unknown(name), _) => Err(format!("`gpg.format` is `{name}`")),
            (Format::OpenPgp | Format::X509, Some(key)) => {
                let args = ["--status-fd=2", "-bsau", key].map(OsString::from).to_vec();
                self.helper(args, dir).run(content)
            }
            (Format::Ssh, Some(key)) if is_literal(key) => self.sign_by_agent(key, content, dir),
            (Format::Ssh, Some(key)) => self.helper(ssh_args(OsStr::new(key)), dir).run(content),
            (_, None) => Err("`user.signingkey` is not set".to_owned()),
        };
        let signature = signature.and_then(|bytes| {
            let text = String::from_utf8_lossy(&bytes).replace('\r', "");
            let right = text.starts_with("-----BEGIN ");
            right.then_some(text).ok_or_else(|| "it printed no signature".to_owned())
        });
        signature.map_err(|problem| self.failure(problem))
    }

    fn failure(&self, problem: String) -> GitError {
        let program = self.program.to_string_lossy().into_owned();
        GitError::CannotSign { program, problem, remedy: self.remedy() }
    }

    /// The key itself stands in the configuration; its private half is the ssh agent's.
    fn sign_by_agent(&self, key: &str, content: &[u8], dir: &Path) -> Result<Vec<u8>, String> {
        let file = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
        let key = key.strip_prefix("key::").unwrap_or(key);
        fs::write(file.path(), key).map_err(|error| error.to_string())?;
        let mut args = ssh_args(file.path().as_os_str());
        args.push("-U".into());
        self.helper(args, dir).run(content)
    }

    fn helper<'a>(&'a self, args: Vec<OsString>, dir: &'a Path) -> Helper<'a> {
        Helper { program: &self.program, args, dir, env: &ASKS_NOBODY, patience: self.patience }
    }

    fn remedy(&self) -> &'static str {
        match self.format {
            Format::Ssh => {
                "check `user.signingkey` (`gpg.ssh.defaultKeyCommand` is not read) and unlock the \
                 key with `ssh-add`"
            }
            Format::OpenPgp | Format::X509 => {
                "check `user.signingkey` and unlock the key, as with `echo | gpg --clearsign`"
            }
            Format::Unknown(_) => "known are `openpgp`, `x509` and `ssh`",
        }
    }
}

impl WorkTree {
    /// Makes a test signature, if commits are to be signed: better now than after hours of work.
    pub fn try_signing(&self) -> Result<bool, GitError> {
        let Some(signer) = &self.signer else { return Ok(false) };
        signer.sign(b"ralph makes sure that it can sign\n", &self.root)?;
        Ok(true)
    }

    /// A commit that is going to be on the user's branch, signed if the user's are.
    pub(super) fn commit_for_branch(
        &self,
        tree: &Tree<'_>,
        parents: &[Commit<'_>],
        message: &str,
    ) -> Result<Oid, GitError> {
        let Some(signer) = &self.signer else {
            return self.new_commit(tree, parents, message);
        };
        let author = self.repo.author_from_env().doing("read who commits")?;
        let committer = self.repo.committer_from_env().doing("read who commits")?;
        let parents: Vec<_> = parents.iter().collect();
        let content = self
            .repo
            .commit_create_buffer(&author, &committer, message, tree, &parents)
            .doing("write a commit")?;
        let content = std::str::from_utf8(&content)
            .map_err(|_| signer.failure("the name of who commits is not UTF-8".to_owned()))?;
        let signature = signer.sign(content.as_bytes(), &self.root)?;
        self.repo.commit_signed(content, &signature, None).doing("write a signed commit")
    }
}

fn ssh_args(key: &OsStr) -> Vec<OsString> {
    let mut args = ["-Y", "sign", "-n", "git", "-f"].map(OsString::from).to_vec();
    args.push(key.to_owned());
    args
}

/// Not a file's name.
fn is_literal(key: &str) -> bool {
    key.starts_with("key::") || key.starts_with("ssh-")
}

fn program(config: &Config, format: &Format) -> OsString {
    let (names, default): (&[&str], _) = match format {
        Format::OpenPgp | Format::Unknown(_) => (&["gpg.openpgp.program", "gpg.program"], "gpg"),
        Format::X509 => (&["gpg.x509.program"], "gpgsm"),
        Format::Ssh => (&["gpg.ssh.program"], "ssh-keygen"),
    };
    let set = names.iter().find_map(|name| config.get_path(name).ok());
    set.map_or_else(|| default.into(), PathBuf::into_os_string)
}

fn text(config: &Config, name: &str) -> Option<String> {
    config.get_string(name).ok().filter(|text| !text.is_empty())
}

/// Git's choice where no key is named.
fn committer(repo: &Repository) -> Option<String> {
    let committer = repo.committer_from_env().ok()?;
    let part = |bytes| String::from_utf8_lossy(bytes).into_owned();
    Some(format!("{} <{}>", part(committer.name_bytes()), part(committer.email_bytes())))
}
