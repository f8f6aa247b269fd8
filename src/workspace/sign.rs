//! Signed commits, where the user's git configuration asks for them.
//!
//! libgit2 cannot sign, so git's helper programs do. A helper gets no terminal, all of its input at
//! once, and a timeout. Agents and gates never run this way.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use git2::{Config, Repository};
use rustix::process::{Pid, Signal, kill_process_group};

use super::error::{GitContext, GitError, if_found};
use super::{Result, WorkTree};

/// Long enough to touch a hardware key.
const PATIENCE: Duration = Duration::from_secs(30);
/// Disables passphrase prompts: without a human they would never end.
const ASKS_NOBODY: [(&str, Option<&str>); 3] =
    [("SSH_ASKPASS_REQUIRE", Some("force")), ("SSH_ASKPASS", Some("false")), ("GPG_TTY", None)];

/// The configuration when the repository was opened: later changes by an agent have no effect.
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
    pub fn of(repo: &Repository) -> Result<Option<Self>> {
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

    pub fn sign(&self, content: &[u8], dir: &Path) -> Result<String> {
        let signature = match (&self.format, &self.key) {
            (Format::Unknown(name), _) => Err(format!("`gpg.format` is `{name}`")),
            (Format::OpenPgp | Format::X509, Some(key)) => {
                let args = ["--status-fd=2", "-bsau", key].map(OsString::from);
                self.run(&args, dir, content)
            }
            (Format::Ssh, Some(key)) if is_literal(key) => self.sign_by_agent(key, content, dir),
            (Format::Ssh, Some(key)) => self.run(&ssh_args(OsStr::new(key)), dir, content),
            (_, None) => Err("`user.signingkey` is not set".to_owned()),
        };
        let signature = signature.and_then(|bytes| {
            let text = String::from_utf8_lossy(&bytes).replace('\r', "");
            let right = text.starts_with("-----BEGIN ");
            right.then_some(text).ok_or_else(|| "it printed no signature".to_owned())
        });
        signature.map_err(|problem| self.failure(problem))
    }

    pub fn failure(&self, problem: String) -> GitError {
        let program = self.program.to_string_lossy().into_owned();
        GitError::CannotSign { program, problem, remedy: self.remedy() }
    }

    /// The public key is in the configuration; the ssh agent has the private key.
    fn sign_by_agent(&self, key: &str, content: &[u8], dir: &Path) -> Result<Vec<u8>, String> {
        let mut file = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
        let key = key.strip_prefix("key::").unwrap_or(key);
        file.write_all(key.as_bytes()).map_err(|error| error.to_string())?;
        let mut args = ssh_args(file.path().as_os_str());
        args.push("-U".into());
        self.run(&args, dir, content)
    }

    fn remedy(&self) -> &'static str {
        match self.format {
            Format::Ssh => {
                "check `user.signingkey` (`gpg.ssh.defaultKeyCommand` is not read) and unlock the \
                 key with `ssh-add`"
            }
            Format::OpenPgp | Format::X509 => {
                "check `user.signingkey` and unlock the key (try `echo | gpg --clearsign`)"
            }
            Format::Unknown(_) => "use `openpgp`, `x509` or `ssh`",
        }
    }
}

impl WorkTree {
    /// Makes a test signature if commits are signed, so that problems show before any work.
    pub fn try_signing(&self) -> Result<bool> {
        let Some(signer) = &self.signer else { return Ok(false) };
        signer.sign(b"ralph makes sure that it can sign\n", &self.root)?;
        Ok(true)
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

const GLANCE: Duration = Duration::from_millis(5);

impl Signer {
    /// What the helper printed, or why there is nothing to use.
    fn run(&self, args: &[OsString], dir: &Path, input: &[u8]) -> Result<Vec<u8>, String> {
        let deadline = Instant::now() + self.patience;
        let mut child = self.spawn(args, dir).map_err(|error| error.to_string())?;
        feed(&mut child, input.to_vec());
        let (out, err) = (gather(child.stdout.take()), gather(child.stderr.take()));
        let end = wait(&mut child, deadline);
        // Whatever it left behind could hold the pipes open.
        let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
        let late = || format!("it did not finish within {} s", self.patience.as_secs());
        let Some(success) = end else {
            let _ = child.wait();
            return Err(late());
        };
        let rest = || deadline.saturating_duration_since(Instant::now()).max(GLANCE);
        let errors = err.recv_timeout(rest()).unwrap_or_default();
        let output = out.recv_timeout(rest()).map_err(|_| late())?;
        if success { Ok(output) } else { Err(last_words(&errors)) }
    }

    fn spawn(&self, args: &[OsString], dir: &Path) -> std::io::Result<Child> {
        let mut command = Command::new(&self.program);
        command.args(args).current_dir(dir);
        for (name, value) in ASKS_NOBODY {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Outside the terminal's foreground: a helper that reads from it is stopped, then killed.
        command.process_group(0).spawn()
    }
}

/// Write errors are ignored: the helper's exit status shows whether it failed.
fn feed(child: &mut Child, input: Vec<u8>) {
    let Some(mut pipe) = child.stdin.take() else { return };
    thread::spawn(move || drop(pipe.write_all(&input)));
}

fn gather(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
        drop(read);
        let _ = sender.send(bytes);
    });
    receiver
}

/// Whether it succeeded; None if it timed out.
fn wait(child: &mut Child, deadline: Instant) -> Option<bool> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status.success()),
            Ok(None) if Instant::now() < deadline => thread::sleep(GLANCE),
            _ => return None,
        }
    }
}

/// The last line of its messages.
fn last_words(errors: &[u8]) -> String {
    let text = String::from_utf8_lossy(errors);
    let for_people = |line: &&str| !line.trim().is_empty() && !line.starts_with("[GNUPG:]");
    let last = text.lines().rfind(for_people).unwrap_or("it failed without a message");
    last.trim().to_owned()
}
