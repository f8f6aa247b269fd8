//! Starts a run: an interrupted one, a new one, or one whose journal was damaged.

use std::collections::BTreeSet;

use crate::decide::findings::findings;
use crate::decide::weigh::lost_skip;
use crate::model::{
    AttemptStarted, Backlog, Base, ConfigNotice, Event, LaneId, Notice, Recorded, RunStarted,
    StoryId, TreeNotice, visible_line,
};
use crate::process::sweep::{RunMark, is_any_kept, own_start};
use crate::runner::error::{Result, RunnerError};
use crate::runner::log::RunLog;
use crate::runner::task::EventSink;
use crate::runner::task::inspect::{Ran, repair};
use crate::runner::task::occupant::Occupant;
use crate::state::{Marks, RunState, Stage};
use crate::workspace::{Guard, GuardPart, Guarded, Keeping, SnapshotKind, SnapshotRef, WorkTree};

use super::World;

/// Records at once, where no loop runs yet.
struct DirectLog<'a> {
    log: &'a mut RunLog,
    backlog: &'a Backlog,
}

impl EventSink for DirectLog<'_> {
    fn record(&mut self, event: Event) -> Result<()> {
        self.log.record(self.backlog, vec![event])?;
        self.log.sync()
    }

    fn notice(&mut self, notice: Notice) {
        self.log.notice(notice);
    }
}

impl World {
    /// Before anything is recorded.
    pub(in crate::runner) fn take_up(&mut self, log: &mut RunLog, cut_off: bool) -> Result<()> {
        self.marks_are_suspect = cut_off;
        self.has_kept = self.has_kept_of(&log.state);
        self.know_earlier_requests(cut_off)?;
        self.know_approvals()?;
        self.env.home.tree().serve(&log.run, &self.config.backlog_key);
        let base = occupant_of_home(&log.state).map(|occupant| occupant.base);
        let is_new = log.state.attempts.next_iteration() == 1;
        self.env.home.tree().know_fetched_by(&log.run, is_new, base.as_ref())?;
        self.env.home.tree().limit_ignored(self.config.settings.ignored);
        if let Some(notice) = self.env.backlog.refresh_all() {
            log.notice(notice);
        }
        if self.has_kept && is_same(&log.state, self.env.backlog.current()) {
            self.env.backlog.compare_marks(&log.state.marks);
        }
        Ok(())
    }

    /// A program that the last run started may still run.
    fn has_kept_of(&self, state: &RunState) -> bool {
        let keep = &self.config.settings.keep_processes;
        let run = state.run.as_ref().filter(|_| !keep.is_empty());
        let mark = run.and_then(|run| RunMark::new(&run.run, run.boot.as_deref()));
        mark.is_some_and(|mark| is_any_kept(&[mark], keep))
    }

    pub(in crate::runner) fn finish_taking_up(&mut self, log: &mut RunLog) -> Result<()> {
        self.env.backlog.compare_marks(&log.state.marks);
        self.copy_user_costs(log)?;
        self.warn_unkept_budgets(log);
        self.env.home.tree().end_attempt()?;
        self.prune(log);
        Ok(())
    }

    pub(in crate::runner) fn resume(&mut self, log: &mut RunLog, cut_off: bool) -> Result<()> {
        self.require_same_branch(log)?;
        let found = findings(&log.state);
        if cut_off {
            // A mark that was not confirmed yet would look like the human's.
            self.repair_marks(log)?;
        }
        let is_lost = cut_off && self.repair_head(log)?;
        if !is_lost {
            self.follow_branch(log, cut_off)?;
            self.take_up_edits(log)?;
        }
        self.shelve_stale_work(log)?;
        if cut_off {
            // Before the run continues: then the attempts in flight are forgotten.
            let parts = if is_lost { &[] } else { GuardPart::after_crash() };
            self.repair_after_cut(log, parts)?;
        }
        let lost = Self::lost_attempts(log);
        let events = lost.into_iter().chain([Event::RunContinued]).chain(self.new_settings(log));
        let events = events.chain(self.new_backlog(log)).chain(self.new_approvals(log)).collect();
        log.record(self.env.backlog.current(), events)?;
        for one in found {
            log.notice(Notice::Resumed(one));
        }
        Ok(())
    }

    /// The ralph.toml, if the journal has not this one.
    fn new_settings(&self, log: &RunLog) -> Option<Event> {
        let now = &self.config.settings_text;
        let is_new = log.state.settings.as_ref() != Some(now);
        is_new.then(|| Event::SettingsTaken(now.clone()))
    }

    /// The backlog, if the journal has not this one.
    fn new_backlog(&self, log: &RunLog) -> Option<Event> {
        let now = self.env.backlog.kept_text();
        (log.state.backlog.as_ref() != Some(&now)).then_some(Event::BacklogTaken(now))
    }

    /// Repairs after attempts that were cut off.
    fn repair_after_cut(&mut self, log: &mut RunLog, parts: &[GuardPart]) -> Result<()> {
        let starts = log.state.attempts.iter().map(|flight| flight.start.clone());
        let starts: Vec<_> = starts.collect();
        starts.iter().try_for_each(|start| self.repair_after_crash(log, start, parts))
    }

    fn repair_after_crash(
        &mut self,
        log: &mut RunLog,
        start: &AttemptStarted,
        parts: &[GuardPart],
    ) -> Result<()> {
        let base = log.state.story(&start.story).and_then(|known| known.base());
        let guarded = Guarded {
            ran: start.attempt.clone(),
            base: base.unwrap_or(&start.base).clone(),
            before: start.before().clone(),
            snapshot: start.snapshot.clone(),
        };
        let tree = self.lane(start.lane)?.tree();
        let guard = Guard::recovered(&tree, guarded, start.held.as_deref());
        let mut log = DirectLog { log, backlog: self.env.backlog.current() };
        repair(&tree, &Ran::attempt(start), &guard, parts, &mut log).map(drop)
    }

    /// One transaction with the first marks: without them, the next process would revert every mark
    /// in the file as an agent's.
    pub(in crate::runner) fn start_anew(&mut self, log: &mut RunLog, is_new: bool) -> Result<()> {
        let rebuild = is_new && self.had_a_journal(log)?;
        self.follow_branch(log, log.state.cut_off)?;
        self.take_up_edits(log)?;
        self.shelve_stale_work(log)?;
        let known =
            if rebuild { self.known_without_a_journal()? } else { vec![self.marks_in_file()] };
        let backlog = self.env.backlog.current();
        let started = RunStarted {
            run: log.run.clone(),
            backlog: self.config.backlog_name.clone(),
            project: backlog.project.clone(),
            description: backlog.description.clone(),
            agent: self.env.agent.label(),
            branch: self.config.branch.clone(),
            allow_dirty: self.config.allow_dirty,
            boot: own_start().map(Box::new),
            carried: carried(&log.state, backlog),
        };
        let begin = Self::lost_attempts(log).into_iter().chain([Event::RunStarted(started)]);
        let settings = Event::SettingsTaken(self.config.settings_text.clone());
        let taken = Event::BacklogTaken(self.env.backlog.kept_text());
        let sums = self.approvals.sums().into_iter().collect();
        let approvals = Event::ApprovalsSeen { sums };
        let events = begin.chain([settings, taken, approvals]).chain(known).collect();
        log.record(self.env.backlog.current(), events)?;
        if rebuild { self.tell_what_is_known(log) } else { Ok(()) }
    }

    /// Old snapshots only cost space, so a failure is no reason to stop.
    pub(in crate::runner) fn prune(&mut self, log: &mut RunLog) {
        let needed = log.state.kept_refs().map(ToOwned::to_owned).collect();
        let now = log.now() / 1000;
        let settings = &self.config.settings;
        let keeping = Keeping { count: settings.keep_snapshots, days: settings.keep_days };
        let pruned = self.env.home.tree().prune(keeping, &needed, now);
        if let Err(error) = pruned {
            let problem = error.to_string();
            log.notice(Notice::Tree(TreeNotice::NotPruned { problem }));
        }
    }

    /// A run stays on its branch, unless the human chooses another one.
    fn require_same_branch(&self, log: &RunLog) -> Result<()> {
        let before = log.state.run.as_ref().and_then(|run| run.branch.clone());
        let is_chosen = self.config.settings.branch.is_some();
        match (before, &self.config.branch) {
            (Some(before), Some(now)) if before != *now && !is_chosen => {
                Err(RunnerError::OtherBranch { before, now: now.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Shelves work of stories that were replaced by another one with the same id.
    fn shelve_stale_work(&mut self, log: &mut RunLog) -> Result<()> {
        let backlog = self.env.backlog.current();
        let is_other = |id: &&StoryId| !continues(&log.state, backlog, id);
        let in_lanes = log.state.lanes.iter().map(|(_, story)| story);
        let accepted = log.state.stories.iter();
        let accepted = accepted.filter(|(_, known)| matches!(known.stage, Stage::Accepted { .. }));
        let others = in_lanes.chain(accepted.map(|(id, _)| id)).filter(is_other);
        let others: BTreeSet<StoryId> = others.cloned().collect();
        for story in others {
            if self.env.backlog.current().story(&story).is_some_and(|story| story.passes) {
                self.disown_work(log, &story);
                self.record(log, Event::WorkLetGo { story })?;
                continue;
            }
            log.notice(Notice::Replaced { story: story.clone() });
            let lane = self.lane(log.state.lanes.of(&story).unwrap_or(LaneId::HOME))?;
            let work = self.work_of(log, &story);
            let mut sink = DirectLog { log, backlog: self.env.backlog.current() };
            let reference = work.shelve(&lane.tree(), &mut sink)?;
            self.with_scratchpad(log, |dir| dir.shelve_scratchpad(&story));
            self.record(log, Event::WorkSetAside { story, reference, claimed: false })?;
        }
        Ok(())
    }

    /// Commits made while no run was active are the human's: moves the base onto them. After a crash
    /// they count as the agent's if git noted that it made them.
    fn follow_branch(&mut self, log: &mut RunLog, cut_off: bool) -> Result<()> {
        let Some(occupant) = occupant_of_home(&log.state) else { return Ok(()) };
        let tree = self.env.home.tree();
        let in_flight = log.state.attempts.at(&occupant.story).map(|flight| &flight.start);
        let in_flight = in_flight.map(|at| (at.before().commit.clone(), at.attempt.clone()));
        let is_known = !cut_off || log.state.left.is_some();
        let mut sink = DirectLog { log, backlog: self.env.backlog.current() };
        if is_known {
            return occupant.follow_branch(&tree, &mut sink).map(drop);
        }
        let head = tree.head_commit()?;
        if head == occupant.head {
            return Ok(());
        }
        let story = occupant.story.clone();
        let (from, attempt) = in_flight.unwrap_or_else(|| (occupant.head.clone(), String::new()));
        let found = tree.human_commits(from.as_deref(), &attempt)?;
        if let Some(found) = found.filter(|found| found.is_on_branch) {
            occupant.follow_human(&tree, found, from.as_deref(), &mut sink)?;
        }
        sink.record(Event::CommitsTaken { story, head })
    }

    /// A journal was damaged, or deleted: there are snapshots of this backlog's runs.
    fn had_a_journal(&self, log: &mut RunLog) -> Result<bool> {
        if self.config.journal_was_damaged {
            return Ok(true);
        }
        let is_missing = !self.env.home.tree().snapshots_of_backlog()?.is_empty();
        if is_missing {
            log.notice(Notice::Config(ConfigNotice::JournalMissing));
        }
        Ok(is_missing)
    }

    /// No mark counts until it is confirmed: a commit of the branch may call its story closed, but an
    /// agent can make one too. Shelved work comes back.
    fn known_without_a_journal(&self) -> Result<Vec<Event>> {
        let Marks { passing, skipped } = Marks::of(self.env.backlog.current());
        let mut events = vec![Marks::default().seen()];
        let mut doubtful = BTreeSet::new();
        for (story, commit) in self.closings_of(passing)? {
            doubtful.insert(story.clone());
            events.push(Event::ConfirmationWanted { story, commit });
        }
        for (story, _) in self.closings_of(skipped)? {
            doubtful.insert(story.clone());
            let question = lost_skip(&story);
            events.push(Event::QuestionRaised { story, question });
        }
        for kept in self.last_kept(|story| !doubtful.contains(story))? {
            if let (SnapshotKind::Shelved, Some(story)) = (kept.kind, kept.story) {
                let (reference, claimed) = (Some(kept.reference), false);
                events.push(Event::WorkSetAside { story, reference, claimed });
            }
        }
        Ok(events)
    }

    /// Those of the stories that have a closing commit by its trailers, and that.
    fn closings_of(&self, ids: BTreeSet<StoryId>) -> Result<Vec<(StoryId, String)>> {
        let backlog = visible_line(&self.config.backlog_name);
        let mut found = Vec::new();
        for id in ids {
            let closing = self.env.home.tree().newest_closing(&id, &backlog)?;
            found.extend(closing.filter(|one| !one.is_undone).map(|one| (id, one.commit)));
        }
        Ok(found)
    }

    /// The newest snapshot of each open story of this backlog.
    fn last_kept(&self, is_open: impl Fn(&StoryId) -> bool) -> Result<Vec<SnapshotRef>> {
        let kept = self.env.home.tree().snapshots_of_backlog()?;
        let ids = self.env.backlog.current().stories.iter().map(|story| &story.id);
        let newest = |id: &StoryId| kept.iter().rev().find(|kept| kept.story.as_ref() == Some(id));
        Ok(ids.filter(|id| is_open(id)).filter_map(newest).cloned().collect())
    }

    /// Reports what was found, and reverts unconfirmed marks.
    fn tell_what_is_known(&mut self, log: &mut RunLog) -> Result<()> {
        self.repair_marks(log)?;
        let is_open = |id: &StoryId| {
            let known = log.state.story(id);
            !known.is_some_and(|known| known.is_to_be_confirmed() || known.question().is_some())
        };
        for kept in self.last_kept(is_open)? {
            let comes_back = kept.kind == SnapshotKind::Shelved;
            if let (Some(story), reference) = (kept.story, kept.reference) {
                log.notice(Notice::Tree(TreeNotice::WorkKept { story, reference, comes_back }));
            }
        }
        Ok(())
    }
}

/// Stories whose question, guidance or unfinished work continues.
pub(in crate::runner) fn carried(state: &RunState, backlog: &Backlog) -> Vec<StoryId> {
    let worth = state.stories.iter().filter(|(_, known)| known.is_worth_carrying());
    worth.map(|(id, _)| id).filter(|id| continues(state, backlog, id)).cloned().collect()
}

/// In the same backlog the id decides, so that a title can be corrected; in another backlog the
/// title must be the same too.
pub(in crate::runner) fn continues(state: &RunState, backlog: &Backlog, id: &StoryId) -> bool {
    let same_title = |title: &str| state.story(id).is_some_and(|known| known.title == title);
    backlog.story(id).is_some_and(|story| {
        !story.is_settled() && (is_same(state, backlog) || same_title(&story.title))
    })
}

/// Not another backlog at the same path.
pub(in crate::runner) fn is_same(state: &RunState, backlog: &Backlog) -> bool {
    let known = state.run.as_ref().map(|run| (&run.project, &run.description));
    known == Some((&backlog.project, &backlog.description))
}

/// The base of the story in the tree, moved onto the current branch.
pub fn base_on_branch(state: &RunState, tree: &WorkTree) -> Result<Option<(StoryId, Base)>> {
    let Some(occupant) = occupant_of_home(state) else { return Ok(None) };
    Ok(occupant.moved_base(tree)?.map(|base| (occupant.story, base)))
}

/// Of an accepted claim, the branch may have the commit already.
fn occupant_of_home(state: &RunState) -> Option<Occupant> {
    let story = state.lanes.occupant(LaneId::HOME)?;
    let is_accepted = matches!(state.story(story)?.stage, Stage::Accepted { .. });
    (!is_accepted).then(|| Occupant::of(state, story))?
}

/// The state that the next `ralph run` would start with: an open run continues, else a new one
/// begins.
pub fn as_next_process(mut state: RunState, backlog: &Backlog) -> RunState {
    let continues = state.is_open() && is_same(&state, backlog);
    let event = if continues {
        Event::RunContinued
    } else {
        Event::RunStarted(RunStarted {
            run: String::new(),
            backlog: String::new(),
            project: backlog.project.clone(),
            description: backlog.description.clone(),
            agent: String::new(),
            branch: None,
            allow_dirty: false,
            boot: None,
            carried: carried(&state, backlog),
        })
    };
    state.apply(&Recorded { at: 0, event });
    state
}
