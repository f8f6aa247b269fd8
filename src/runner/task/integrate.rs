//! Integration: a story's work and its mark become one commit on the branch.

use std::fs::Metadata;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::model::{
    AgentNotice, Base, CommitsReplaced, Event, EvidenceItem, GateEnd, LaneId, LeftOut, Notice,
    Story, StoryChange, first_few, visible_line,
};
use crate::runner::config::RunConfig;
use crate::runner::effects::Integration;
use crate::runner::error::{Result, RunnerError};
use crate::runner::task::inspect::instructions_in;
use crate::runner::task::occupant::Occupant;
use crate::runner::task::shelve::Landing;
use crate::runner::task::{EventSink, Mailbox, Message};
use crate::state::{Acceptance, Marks};
use crate::store::SyncPoint;
use crate::store::prd::{MarkedText, PrdFile, WrittenText, broken_beside};
use crate::store::ralph_dir::RalphDir;
use crate::text::redact::SecretRules;
use crate::workspace::{
    BASE_TRAILER, CollectRequest, Committed, GitError, ReadyCommit, Replacement, Staging,
    StoredBlob, WorkTree,
};

/// The most files named in a trailer.
const NAMED: usize = 10;

type Trailer = (&'static str, String);

/// A mark that is committed to the branch.
pub struct MarkCommit {
    pub story: Story,
    /// The backlog with the mark.
    pub text: MarkedText,
    /// The same, if it was stored ahead.
    pub stored: Option<StoredBlob>,
    pub run: String,
    pub iteration: u32,
    /// The commit that an earlier try made ready: it may be on the branch already.
    pub prepared: Option<String>,
    pub base: Option<Base>,
    /// The work tree that shelving returns to, if commits of the story's stay on the branch.
    pub rest: Option<String>,
    /// The branch tip that its last attempt, or the gates of its claim, left.
    pub head: Option<String>,
    /// Files whose changes the human did not accept.
    pub refused: Vec<PathBuf>,
    /// Why this happens must be safe before the mark is written.
    pub planned: SyncPoint,
    pub config: Arc<RunConfig>,
}

/// What a commit of a mark leaves.
pub struct MarkWritten {
    pub written: WrittenText,
    /// The tree is known without a scan.
    pub next_base: Option<Base>,
    pub left_out: Vec<LeftOut>,
    pub replaced: Option<CommitsReplaced>,
}

/// The commit, what it is, and the file.
type Closed = (String, StoryChange, MarkWritten);

/// An accepted claim.
pub struct Close {
    pub mark: MarkCommit,
    pub evidence: Vec<EvidenceItem>,
    /// What the evidence is about, if it is why the claim was accepted.
    pub checked: Option<Base>,
    /// What changes are counted from: what gates wrote is no work.
    pub counted: Option<Base>,
    pub by: Acceptance,
    /// The gate that is evidence even if nothing changed.
    pub turned_green: Option<String>,
    /// The commit that says that it was closed before the journal was lost.
    pub confirms: Option<String>,
    /// If the human accepted it after it had left its lane.
    pub landing: Option<Landing>,
    pub secrets: Arc<SecretRules>,
    pub ralph_dir: RalphDir,
}

impl Close {
    pub fn run(mut self, tree: &WorkTree, mailbox: &mut Mailbox) -> Result<Integration> {
        let lands = self.landing.is_some();
        if !self.work_is_there(tree, mailbox)? {
            return Ok(Integration::Conflicting);
        }
        // The human accepted the claim, and not what it is merged with.
        if lands && !self.evidence.is_empty() {
            return Ok(Integration::Outdated);
        }
        let (story, ralph_dir) = (self.mark.story.id.clone(), self.ralph_dir.clone());
        let occupant = self.mark.occupant();
        let closed = match self.mark.commit_from_before(tree)? {
            Some(commit) => self.confirm(tree, commit),
            None if self.is_outdated(tree, mailbox)? => return Ok(Integration::Outdated),
            None => match self.is_committed(tree)? {
                Some(commit) => self.confirm(tree, commit),
                None => self.commit(tree, mailbox),
            },
        };
        let (commit, change, written) = match closed {
            // The human committed at this moment.
            Err(RunnerError::Git(GitError::HeadMoved(_))) => {
                occupant.map(|occupant| occupant.follow_branch(tree, mailbox)).transpose()?;
                return Ok(Integration::Outdated);
            }
            Err(RunnerError::Git(GitError::NothingChanged)) => {
                return Ok(Integration::NothingChanged);
            }
            Err(RunnerError::Git(error)) if error.is_about_content() => {
                let beyond_agent = error.is_beyond_the_agent();
                return Ok(Integration::Unfit { error: error.to_string(), beyond_agent });
            }
            Err(RunnerError::Git(error)) if error.is_the_agents_doing() => {
                return Ok(Integration::Refused { error: error.to_string() });
            }
            closed => closed?,
        };
        // The loop may have ended.
        let _ = mailbox.blocking_send(Message::Marked(Box::new(written)));
        if let Err(error) = ralph_dir.archive_scratchpad(&story) {
            mailbox.notice(Notice::Agent(AgentNotice::Scratchpad { problem: error.to_string() }));
        }
        Ok(Integration::Done { commit, change })
    }

    /// False if shelved work conflicts with the branch.
    fn work_is_there(&mut self, tree: &WorkTree, log: &mut dyn EventSink) -> Result<bool> {
        let Some(landing) = self.landing.take() else { return Ok(true) };
        let base = landing.run(tree, log)?;
        let is_there = base.is_some();
        self.mark.head = base.as_ref().and_then(|base| base.commit.clone());
        self.mark.base = base;
        Ok(is_there)
    }

    /// True if the evidence is about another commit than the branch's, which the human made since.
    fn is_outdated(&mut self, tree: &WorkTree, log: &mut dyn EventSink) -> Result<bool> {
        let Some(occupant) = self.mark.occupant() else { return Ok(false) };
        let mark = &mut self.mark;
        let base = Some(occupant.follow_branch(tree, log)?);
        let has_moved = mark.base != base;
        mark.base = base;
        Ok(self.checked.as_ref().is_some_and(|checked| has_moved || !tree.has_tree(checked)))
    }

    /// The commit that the story is confirmed by, if the branch has the mark too.
    fn is_committed(&self, tree: &WorkTree) -> Result<Option<String>> {
        let Some(commit) = &self.confirms else { return Ok(None) };
        let config = &self.mark.config;
        let Some(path) = &config.backlog_in_tree else { return Ok(Some(commit.clone())) };
        let bytes = tree.committed(path)?.unwrap_or_default();
        let loaded = PrdFile::new(path).parse(String::from_utf8_lossy(&bytes).into_owned());
        let marks = loaded.map(|loaded| Marks::of(&loaded.backlog)).unwrap_or_default();
        Ok(marks.passing.contains(&self.mark.story.id).then(|| commit.clone()))
    }

    /// The branch has the commit.
    fn confirm(self, tree: &WorkTree, commit: String) -> Result<Closed> {
        let backlog = self.mark.config.backlog_in_tree.clone();
        let stat = tree.stat_of_closing(&commit, backlog.as_slice())?;
        let change = StoryChange::new(stat, self.turned_green);
        Ok((commit, change, self.mark.confirm()?))
    }

    fn commit(self, tree: &WorkTree, log: &mut dyn EventSink) -> Result<Closed> {
        let Self { mark, evidence, checked, counted, by, turned_green, confirms, secrets, .. } =
            self;
        let is_evident = turned_green.is_some() || confirms.is_some();
        let base = mark.base.as_ref();
        let prompt = mark.instructions(tree)?;
        let prompt = prompt.as_ref().map(|(path, bytes)| Replacement::new(path, bytes));
        let backlog = mark.backlog();
        let is_known_after = backlog.is_some() && prompt.is_none();
        let replaced: Vec<Replacement<'_>> = backlog.into_iter().chain(prompt).collect();
        let mut except: Vec<PathBuf> = replaced.iter().map(|one| one.path.to_owned()).collect();
        let in_tree = mark.config.backlog_in_tree.iter();
        except.extend(in_tree.flat_map(|path| broken_beside(tree.root(), path)));
        let request = base.map(|base| CollectRequest {
            base,
            counted: counted.as_ref().filter(|counted| tree.has_tree(counted)),
            checked: checked.as_ref(),
            must_change: !is_evident && by == Acceptance::Evidence,
            except: &except,
            refused: &mark.refused,
            staging: Some(Staging { rules: &mark.config.settings.staging, secrets: &secrets }),
            as_it_is: by == Acceptance::Human { as_it_is: true },
        });
        let work = match &request {
            Some(request) => tree.collect(request)?,
            None => tree.collect_nothing()?,
        };
        let stat = base.map(|base| tree.stat_of(&work, base, &except)).transpose()?;
        let change = StoryChange::new(stat.unwrap_or_default(), turned_green);
        let mut trailers = mark.trailers();
        trailers.push(("Ralph-Change", change.to_string()));
        let parent = tree.parent_of(&work)?;
        trailers.extend(base.and_then(|base| base_trailer(base, parent)));
        trailers.extend(evidence.iter().map(evidence_trailer));
        if let (Some(base), false) = (base, evidence.is_empty()) {
            let note = note_on_edits(tree, base, &mark.config.human_files)?;
            trailers.extend(note.map(|note| ("Ralph-Note", note)));
        }
        let title = format!("{}: {}", mark.story.id, visible_line(&mark.story.title));
        let message = message(&title, &trailers);
        let (story, iteration) = (&mark.story.id, mark.iteration);
        let own = base.map(|base| tree.keep_replaced(&work, story, iteration, base)).transpose()?;
        let own = own.flatten();
        let has_secret = own.as_ref().is_some_and(CommitsReplaced::has_secret);
        let forget = |request| tree.forget_secrets(story, request, has_secret);
        request.as_ref().map(forget).transpose()?;
        let ready = tree.prepare_commit(work, &replaced, &message)?;
        drop((request, replaced));
        let (done, mut written) = mark.advance(tree, ready, log)?;
        written.replaced = own;
        written.next_base = done.next_base.filter(|_| is_known_after);
        Ok((done.commit, change, written))
    }
}

/// A story that the human skips.
pub struct Skip {
    pub mark: MarkCommit,
    /// The story whose unfinished work is in the lane: the new commit is not its work.
    pub occupant: Option<Occupant>,
}

impl Skip {
    /// Returns the commit, if the backlog is committed.
    pub fn run(self, tree: &WorkTree, mailbox: &mut Mailbox) -> Result<Option<String>> {
        let (commit, written) = self.mark.skip(tree, mailbox)?;
        if let (Some(occupant), Some(_)) = (self.occupant, &commit) {
            occupant.follow_branch(tree, mailbox)?;
        }
        // The loop may have ended.
        let _ = mailbox.blocking_send(Message::Marked(Box::new(written)));
        Ok(commit)
    }
}

impl MarkCommit {
    fn occupant(&self) -> Option<Occupant> {
        let (base, rest, head) = (self.base.clone()?, self.rest.clone(), self.head.clone());
        Some(Occupant { story: self.story.id.clone(), lane: LaneId::HOME, base, rest, head })
    }

    fn skip(
        self,
        tree: &WorkTree,
        log: &mut dyn EventSink,
    ) -> Result<(Option<String>, MarkWritten)> {
        let before = self.commit_from_before(tree)?;
        if before.is_some() || self.config.backlog_in_tree.is_none() {
            self.planned.wait()?;
            return Ok((before, self.confirm()?));
        }
        let message = message(&format!("{}: skipped", self.story.id), &self.trailers());
        let nothing = tree.collect_nothing()?;
        let ready = tree.prepare_commit(nothing, self.backlog().as_slice(), &message)?;
        let (done, written) = self.advance(tree, ready, log)?;
        Ok((Some(done.commit), written))
    }

    /// Writes the backlog and moves the branch, after the plan and the commit's id are synced: after a
    /// crash, no other commit is taken for it.
    fn advance(
        self,
        tree: &WorkTree,
        ready: ReadyCommit,
        log: &mut dyn EventSink,
    ) -> Result<(Committed, MarkWritten)> {
        let (story, commit) = (self.story.id.clone(), ready.id());
        log.record(Event::CommitPrepared { story, commit })?;
        let backlog = self.config.backlog_in_tree.as_deref();
        let advance = |found: Option<&Metadata>| tree.advance(ready, backlog.zip(found));
        let (written, done) = self.text.write_during(advance)?;
        match done {
            Ok(done) => {
                let left_out = done.left_out.clone();
                Ok((done, MarkWritten { written, next_base: None, left_out, replaced: None }))
            }
            Err(error) => {
                written.revert()?;
                Err(error.into())
            }
        }
    }

    /// The commit is there: only the file lacks the mark.
    fn confirm(self) -> Result<MarkWritten> {
        let written = self.text.write()?;
        Ok(MarkWritten { written, next_base: None, left_out: Vec::new(), replaced: None })
    }

    /// An earlier try may have ended between the commit and its confirmation.
    fn commit_from_before(&self, tree: &WorkTree) -> Result<Option<String>> {
        let Some(prepared) = &self.prepared else { return Ok(None) };
        Ok(tree.is_on_branch(prepared)?.then(|| prepared.clone()))
    }

    fn trailers(&self) -> Vec<Trailer> {
        vec![
            ("Ralph-Story", self.story.id.to_string()),
            ("Ralph-Backlog", visible_line(&self.config.backlog_name)),
            ("Ralph-Run", self.run.clone()),
            ("Ralph-Iteration", self.iteration.to_string()),
        ]
    }

    /// The backlog's new bytes, if it is committed.
    fn backlog(&self) -> Option<Replacement<'_>> {
        let path = self.config.backlog_in_tree.as_deref()?;
        Some(Replacement { path, bytes: self.text.text().as_bytes(), stored: self.stored })
    }

    /// The committed instructions from before the story, if the agent committed a change to them.
    fn instructions(&self, tree: &WorkTree) -> Result<Option<(PathBuf, Vec<u8>)>> {
        let path = instructions_in(tree, &self.config);
        let (Some(base), Some(path)) = (&self.base, path) else { return Ok(None) };
        let before = tree.committed_before(base, &path)?;
        Ok(before.map(|bytes| (path, bytes)))
    }
}

/// Needed if the agent made commits of its own: then the parent is not the story's base.
fn base_trailer(base: &Base, parent: Option<String>) -> Option<Trailer> {
    let began = || base.commit.clone().unwrap_or_else(|| "none".to_owned());
    (base.commit != parent).then(|| (BASE_TRAILER, began()))
}

/// Records uncommitted edits that the gates saw besides the story's work.
fn note_on_edits(tree: &WorkTree, base: &Base, human_files: &[PathBuf]) -> Result<Option<String>> {
    let mut edited = tree.edited_before(base)?;
    edited.retain(|path| !human_files.contains(path));
    Ok((!edited.is_empty())
        .then(|| format!("gates ran with uncommitted edits in {}", first_few(&edited, NAMED))))
}

/// `Ralph-Gate: cargo test (12.3s)`.
fn evidence_trailer(item: &EvidenceItem) -> Trailer {
    let EvidenceItem::Gate(report) = item;
    if let GateEnd::RedBefore { .. } = report.end {
        return ("Ralph-Gate", format!("{} (red before this story)", report.gate));
    }
    let seconds = Duration::from_millis(report.elapsed_ms).as_secs_f64();
    ("Ralph-Gate", format!("{} ({seconds:.1}s)", report.gate))
}

fn message(subject: &str, trailers: &[Trailer]) -> String {
    let trailers: Vec<String> =
        trailers.iter().map(|(key, value)| format!("{key}: {value}\n")).collect();
    format!("{subject}\n\n{}", trailers.concat())
}

#[cfg(test)]
mod tests;
