//! Every reason to stop and every event, as people read them.

use super::*;
use crate::model::{
    Budget, BudgetLevel, Cause, CommitsReplaced, HeldKind, LeftOut, NudgedBy, StuckEvent, Unclean,
    Untrusted, Usd, Violation, WhyLeftOut, WhyUnclean,
};

/// One of each.
fn reasons() -> Vec<StopReason> {
    let error = || "no such file\nmore".to_owned();
    let budget = |budget| {
        let (spent, limit) = (Usd::of(25.3), Usd::of(25.0));
        StopReason::BudgetUsedUp { budget, spent, limit }
    };
    vec![
        StopReason::AllDone,
        StopReason::StoryDone { story: id("US-001") },
        StopReason::Once,
        budget(Budget::Run),
        budget(Budget::Day),
        StopReason::MaxIterations { limit: 50 },
        StopReason::BreakerOpen { why: "two stories made no progress".into(), error: error() },
        StopReason::FailsAtOnce { times: 3, error: "exit code 7".into() },
        StopReason::Failing { failed: 8, error: error() },
        StopReason::ConsecutiveErrors { limit: 5, error: error() },
        StopReason::MaxRunTime { limit_ms: 43_200_000, worked_ms: 43_260_000 },
        StopReason::SlowIterations { limit_ms: 60_000, average_ms: 90_000, iterations: 4 },
        StopReason::UsageLimit { resets_at: None, error: "usage limit reached".into() },
        StopReason::ServiceDown { error: "529 overloaded".into() },
        StopReason::AccountTrouble { error: "401 invalid API key".into() },
        StopReason::AgentUnusable { error: "`claude` is not installed".into() },
        StopReason::DiskLow { free: 90_000_000, floor: 1_000_000_000, place: "/x".into() },
        StopReason::NothingToSelect {
            blocked: vec![Blocked { story: id("US-001"), because: Because::Parked }],
        },
        StopReason::Aborted,
    ]
}

#[test]
fn a_story_that_the_human_marked_is_not_open_in_the_table() {
    let mut backlog = backlog("Short title");
    let [first, second, third] = &mut backlog.stories[..] else { unreachable!() };
    (first.passes, second.passes, third.skipped) = (true, true, true);
    let events = [
        started("demo"),
        raised("US-001"),
        raised("US-003"),
        closed("US-002", "abcdefgh"),
        end(StopReason::AllDone),
    ];
    let sink = Sink::default();
    play(&mut sink.reporter(None, false, true, true), backlog, &events);
    let text = sink.text();
    let table: Vec<&str> = text.lines().filter(|line| line.starts_with("  US")).collect();
    insta::assert_snapshot!(table.join("\n"), @r"
      US-001  ✓ marked as passing           0
      US-002  ✓ complete                    0              abcdefg
      US-003  → marked as skipped           0
    ");
}

#[test]
fn every_reason_has_a_word_an_exit_code_a_heading_and_a_remedy() {
    let all = reasons().into_iter().map(|reason| {
        let (word, code) = (reason.word(), reason.stop().exit_code);
        let stored = serde_json::to_value(&reason).unwrap();
        assert_eq!(stored["reason"], word, "programs and the journal use one word");
        format!("{word} ({code})\n{}", ending(reason, Event::RunContinued))
    });
    let lines: Vec<String> = all.collect();
    let text: Vec<&str> = lines.iter().flat_map(|one| one.lines()).collect();
    let text: Vec<&str> = text.into_iter().filter(|line| !line.contains("Final: ")).collect();
    insta::assert_snapshot!(text.join("\n"), @r"
    all_done (0)
    ━━━ All tasks complete ━━━
    story_done (0)
    ━━━ US-001 complete ━━━
    once (3)
    ━━━ One iteration done ━━━
    Run `ralph run` to continue.
    budget_used_up (3)
    ━━━ Budget used up ━━━
    Stopped: $25.30 of $25.00 spent in this run, 3 stories left; raise the limit with --budget USD (`budget.per_run` in ralph.toml)
    `ralph run` starts a new run with a new budget.
    budget_used_up (3)
    ━━━ Budget used up ━━━
    Stopped: $25.30 of $25.00 spent in this repository today, 3 stories left; raise the limit with --budget-day USD (`budget.per_day` in ralph.toml)
    Run `ralph run` again tomorrow.
    max_iterations (3)
    ━━━ Out of iterations ━━━
    Stopped: 50 iterations used, 3 stories left
    Raise the limit with --max-iterations N.
    breaker_open (3)
    ━━━ Circuit breaker tripped ━━━
    Stopped: two stories made no progress, and after the pause: no such file
    See the agents' output in `.ralph/runs/`; `ralph run` starts a new run. `cool_down` in ralph.toml (or RALPH_COOL_DOWN) sets the pause; `none` disables it.
    fails_at_once (3)
    ━━━ The agent fails immediately ━━━
    Stopped: 3 agents in a row failed within 10 seconds of their start: exit code 7
    Start the agent yourself to see its error.
    failing (3)
    ━━━ Too many iterations failed ━━━
    Stopped: 8 of the last 10 iterations failed, the last: no such file
    Raise the limit with --max-failing N.
    consecutive_errors (3)
    ━━━ Too many errors in a row ━━━
    Stopped: 5 errors in a row, the last: no such file
    Raise the limit with --max-consecutive-errors N.
    max_run_time (3)
    ━━━ Out of time ━━━
    Stopped: 12h01m of 12h00m used, 3 stories left
    Raise the limit with --max-run-time TIME.
    slow_iterations (3)
    ━━━ Iterations take too long ━━━
    Stopped: 4 iterations took 1m30s on average (limit 1m00s)
    Raise the limit with --max-average-iteration TIME.
    usage_limit (3)
    ━━━ Usage limit reached ━━━
    Stopped: usage limit reached
    `--on-limit wait` waits until the limit resets.
    service_down (4)
    ━━━ Service unavailable ━━━
    Stopped: 529 overloaded
    Check your connection and the service's status page.
    account_trouble (4)
    ━━━ Login or billing problem ━━━
    Stopped: 401 invalid API key
    Log in again with the agent, or fix its API key or billing.
    agent_unusable (1)
    ━━━ The agent cannot be used ━━━
    Stopped: `claude` is not installed
    Fix `[agent]` in ralph.toml (`model`, `program`).
    disk_low (4)
    ━━━ Disk nearly full ━━━
    Stopped: only 90 MB free on /x (minimum 1 GB)
    Free some space, or lower `min_free_disk` in ralph.toml.
    nothing_to_select (4)
    ━━━ You are needed ━━━
    US-001 is parked with an open question
    No story can start until you change the backlog: undo a skip, or remove a dependency.
    aborted (5)
    ━━━ Aborted ━━━
    `ralph run` starts a new run with the open stories.
    ");
}

#[test]
fn every_event_has_its_line() {
    let story = || id("US-001");
    let reference = || "refs/ralph/attempts/US-001/1".to_owned();
    let returned = |why| Event::ReturnPlanned {
        story: story(),
        why,
        to: Base { commit: None, tree: "t".into() },
    };
    let nudged = |by, delivered| Event::Nudged { story: story(), text: "x".into(), by, delivered };
    let stuck = |step| Event::Stuck { story: story(), step };
    let held = |whose, path: &str| {
        let (paths, kept) = (vec![path.to_owned()], ".git/ralph/changed/1".into());
        repaired(Violation::Held { whose, paths, kept, claims: false })
    };
    let near = |budget, binding| Event::BudgetNear {
        level: BudgetLevel { budget, spent: Usd::of(20.0), limit: Usd::of(25.0), binding },
    };
    let events = [
        near(Budget::Run, true),
        near(Budget::Run, false),
        near(Budget::Story(story()), true),
        Event::StoryParked { story: story() },
        Event::AttemptKept { story: story(), reference: reference(), changes: String::new() },
        returned(Cause::FreshStart),
        returned(Cause::Elsewhere),
        returned(Cause::Rewritten),
        held(HeldKind::GitSetup, ".git/config"),
        held(HeldKind::Instructions, "PROMPT.md"),
        held(HeldKind::Settings, "ralph.toml"),
        held(HeldKind::AgentSettings, ".mcp.json"),
        // As earlier versions recorded them.
        Event::FilesPutBack {
            story: story(),
            paths: vec!["a.txt".into(), "b.txt".into()],
            snapshot: Some("refs/ralph/snapshots/1".into()),
            blocked: vec![],
        },
        Event::SetupPutBack {
            story: story(),
            names: vec!["config".into()],
            kept: ".git/ralph/setup".into(),
        },
        Event::StashesPutBack { story: story(), messages: vec!["WIP on main".into()] },
        Event::InstructionsPutBack { story: story(), path: "PROMPT.md".into(), kept: None },
        nudged(NudgedBy::Driver, true),
        nudged(NudgedBy::Human, true),
        nudged(NudgedBy::Human, false),
        stuck(StuckEvent::Asked { minutes: 30 }),
        stuck(StuckEvent::Recovered),
        stuck(StuckEvent::MoreTime),
        stuck(StuckEvent::Ended { minutes: 45 }),
        Event::StageReached { story: story(), stage: "design".into() },
        Event::SecondLookWanted { story: story() },
        Event::WorkBroughtBack { story: story(), reference: reference(), conflicts: vec![] },
        answered("US-001", Answer::Guidance { text: "x".into() }),
        answered("US-001", Answer::Accept),
        answered("US-001", Answer::Retry),
        Event::WaitCutShort,
        Event::BreakerOpened {
            why: "five agents broke down".into(),
            until: 8 * 3_600_000 + 1_000_000,
        },
        Event::RunInterrupted { signal: 2 },
        returned(Cause::Unfinished),
    ];
    insta::assert_snapshot!(shown(None, &events), @r"
    [10:00:00] $20.00 of $25.00 spent in this run; the run stops at $25.00 (change it with --budget)
    [10:00:10] $20.00 of $25.00 spent in this run; with a subscription the run does not stop at $25.00 (change it with --budget)
    [10:00:20] $20.00 of $25.00 spent on US-001; ralph asks you at $25.00 (change it with --budget-story)
    [10:00:30] ⏸ US-001 parked: waiting for your answer
    [10:00:40] work on US-001 kept at refs/ralph/attempts/US-001/1
    [10:00:50] US-001 starts over: branch and work tree are reset to its base
    [10:01:00] the agent left the branch while working on US-001; restored the branch and the work tree
    [10:01:10] the agent rewrote older commits while working on US-001; restored the branch and the work tree
    [10:01:20] restored git configuration or hooks that the agent changed: .git/config · the agent's version: .git/ralph/changed/1
    [10:01:30] restored your instructions that the agent changed: PROMPT.md · the agent's version: .git/ralph/changed/1
    [10:01:40] restored ralph's settings that the agent changed: ralph.toml · the agent's version: .git/ralph/changed/1
    [10:01:50] restored settings of agents that the agent changed: .mcp.json · the agent's version: .git/ralph/changed/1
    [10:02:00] restored uncommitted files that the agent deleted or reset: a.txt, b.txt · refs/ralph/snapshots/1
    [10:02:10] restored git configuration or hooks that the agent changed: config · the agent's version: .git/ralph/setup
    [10:02:20] restored stashes that the agent dropped: WIP on main
    [10:02:30] restored your instructions that the agent changed: PROMPT.md
    [10:02:40] US-001 is not making progress: reminded its agent of the story
    [10:02:50] message delivered to the agent
    [10:03:00] the agent takes no messages now; the story's next attempt gets yours
    [10:03:10] US-001: no progress for a long time (30 min into the attempt)
    [10:03:20] US-001 is making progress again
    [10:03:30] US-001 gets more time
    [10:03:40] ended the agent of US-001 after 45 min; its work stays
    [10:03:50] ✓ US-001 reached stage design
    [10:04:00] the agent claims US-001; the next attempt checks it again
    [10:04:10] restored the work on US-001
    [10:04:20] US-001 continues with your guidance
    [10:04:30] you accepted US-001
    [10:04:40] retrying US-001
    [10:04:50] Wait skipped; continuing
    [10:05:00] ⏸ five agents broke down: pausing for 11m40s, then trying one iteration
    [10:05:10] Interrupted. Run `ralph run` to continue.
    [10:05:20] the agent was killed in the middle of a merge or rebase while working on US-001; restored the branch and the work tree
    ");
}

#[test]
fn what_was_repaired_lost_or_left_out_is_shown_with_quiet_too() {
    let story = || id("US-001");
    let files_put_back = |lost: &[&str], blocked: &[&str]| {
        repaired(Violation::UserFiles {
            lost: lost.iter().map(ToString::to_string).collect(),
            blocked: blocked.iter().map(ToString::to_string).collect(),
            changed: Vec::new(),
            kept: Some("refs/ralph/snapshots/1".into()),
        })
    };
    let events = [
        files_put_back(&["a.txt"], &["b.txt", "c.txt"]),
        files_put_back(&[], &["b.txt"]),
        repaired(Violation::UserFiles {
            lost: Vec::new(),
            blocked: Vec::new(),
            changed: vec!["n\x1b.txt".into()],
            kept: Some("refs/ralph/snapshots/1".into()),
        }),
        repaired(Violation::Stashes {
            messages: vec!["WIP on main".into()],
            new: vec!["On main: x".into()],
        }),
        repaired(Violation::Index { paths: Vec::new() }),
        repaired(Violation::Index { paths: vec!["a\x1b".into(), "b".into()] }),
        Event::MarksPutBack { stories: vec![story(), id("US-002")] },
        Event::BacklogPutBack { problem: "it is\x1b a folder\n1:1".into(), kept: None },
        Event::BacklogPutBack { problem: "p".into(), kept: Some("/r/.git/ralph".into()) },
        Event::StoriesRemoved { story: story(), removed: vec![id("US-002"), id("US-003")] },
        Event::RequestsIgnored { asked: vec!["mark US-002 pass".into(), "nudge a\x1b".into()] },
        Event::FilesLeftOut {
            files: vec![
                LeftOut::new("a\x1bb/".as_ref(), 1, WhyLeftOut::Repository),
                LeftOut::new("target".as_ref(), 12, WhyLeftOut::Name),
                LeftOut::new(".env".as_ref(), 1, WhyLeftOut::Users),
                LeftOut::new("big.bin".as_ref(), 1, WhyLeftOut::Filter),
            ],
        },
    ];
    assert_eq!(quietly(&events), shown(None, &events));
    insta::assert_snapshot!(shown(None, &events), @r"
    [10:00:00] restored uncommitted files that the agent deleted or reset: a.txt · refs/ralph/snapshots/1
    [10:00:00] cannot restore, because something else is in the way: b.txt, c.txt · a copy is at refs/ralph/snapshots/1
    [10:00:10] cannot restore, because something else is in the way: b.txt · a copy is at refs/ralph/snapshots/1
    [10:00:20] the agent changed files of yours that git does not know: n\x1b.txt · a copy is at refs/ralph/snapshots/1
    [10:00:30] restored stashes that the agent dropped: WIP on main
    [10:00:30] there are stashes that were not there before the agent: On main: x
    [10:00:40] restored git's index, which the agent removed or broke
    [10:00:50] restored git's index where the agent changed it: a\x1b, b
    [10:01:00] reverted the marks of US-001, US-002: neither a commit nor `ralph mark` confirms them; if one is correct, set it with `ralph mark US-001 pass`
    [10:01:10] restored the backlog: it is\x1b a folder
    [10:01:20] restored the backlog: p · what was there: /r/.git/ralph
    [10:01:30] US-002, US-003 disappeared from the backlog
    [10:01:40] ignored what no command of yours asked for: mark US-002 pass, nudge a\x1b
    [10:01:50] a\x1bb/ was not committed: it is a nested repository
    [10:01:50] target was not committed (12 files): it matches `never_commit` (see ralph.toml)
    [10:01:50] .env was not committed: it was untracked before the story, and the agent changed it
    [10:01:50] big.bin was not committed: it needs a git filter; commit it yourself with git
    ");
}

#[test]
fn commits_that_one_took_the_place_of_are_told_with_the_reasons() {
    let unclean = |why, path: &str, files| Unclean { why, path: path.into(), files };
    let replaced = |commits, unclean, kept: Option<&str>| {
        let (story, kept) = (id("US-001"), kept.map(Into::into));
        Event::CommitsReplaced(CommitsReplaced { story, commits, unclean, kept })
    };
    let all = vec![
        unclean(WhyUnclean::Users, "a\x1b.txt", 3),
        unclean(WhyUnclean::Secret, "key", 1),
        unclean(WhyUnclean::TooLarge, "big", 1),
        unclean(WhyUnclean::Repository, "inner", 1),
        unclean(WhyUnclean::Name, ".env", 1),
    ];
    let events = [
        replaced(1, vec![unclean(WhyUnclean::Users, "a.txt", 1)], Some("refs/ralph/attempts/A/1")),
        replaced(4, all, Some("refs/ralph/attempts/A/2")),
        replaced(2, vec![unclean(WhyUnclean::Secret, "", 1)], None),
    ];
    assert_eq!(quietly(&events), shown(None, &events));
    insta::assert_snapshot!(shown(None, &events), @r"
    [10:00:00] US-001: replaced 1 commit of the agent by one without your a.txt · kept at refs/ralph/attempts/A/1
    [10:00:10] US-001: replaced 4 commits of the agent by one without your a\x1b.txt and 2 more, a secret in key, big (too large), the repository inner, .env (`never_commit`) · those without secrets are at refs/ralph/attempts/A/2
    [10:00:20] US-001: replaced 2 commits of the agent by one without a secret in a message
    ");
}

fn repaired(violation: Violation) -> Event {
    Event::Repaired { after: Untrusted::Attempt, story: Some(id("US-001")), violation }
}

#[test]
fn refs_that_were_put_back_are_named() {
    let refs = |names: &[&str], count, lost: &[&str], kept: Option<&str>| {
        let list = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        let kept = kept.map(str::to_owned);
        repaired(Violation::Refs { names: list(names), count, lost: list(lost), kept })
    };
    let kept = Some("refs/ralph/changed/1");
    let events = [
        refs(&["heads/a\x1b", "tags/v1"], 300, &["heads/b"], kept),
        refs(&["heads/a"], 1, &[], None),
    ];
    assert_eq!(quietly(&events), shown(None, &events));
    insta::assert_snapshot!(shown(None, &events), @r"
    [10:00:00] restored branches, tags or other refs that the agent changed: heads/a\x1b, tags/v1 · 300 in all · the agent's version: refs/ralph/changed/1
    [10:00:00] cannot restore, because git deleted their commits: heads/b
    [10:00:10] restored branches, tags or other refs that the agent changed: heads/a
    ");
}
