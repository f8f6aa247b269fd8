use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Barrier};

use crate::decide::samples::{History, escalation, failed, id};
use crate::model::{
    Answer, AttemptCost, Escalation, EscalationKind, Event, ModelUse, Recorded, Verdict,
};
use crate::store::{Journal, Store, StorePlace, UserCosts, state_folder, user_spent_since};

use super::*;

const DAY: i64 = 24 * 60 * 60 * 1000;

fn costing(dollars: f64) -> Usage {
    Usage {
        cost_usd: Some(dollars),
        input_tokens: 10,
        output_tokens: 20,
        cache_read_tokens: 30,
        cache_write_tokens: 40,
        turns: 2,
        tool_calls: 3,
    }
}

fn used(model: &str, dollars: u64, input_tokens: u64) -> ModelUse {
    let cost = Usd::from_cents(100 * dollars);
    ModelUse { model: model.into(), cost, input_tokens, ..ModelUse::default() }
}

struct Repo {
    folder: tempfile::TempDir,
}

impl Repo {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("journal.db")
    }

    fn write(&self, events: &[Recorded], run: &str) -> &Self {
        let mut journal = self.store().journal("PRD.json").unwrap();
        for recorded in events {
            journal.append(run, recorded.at, std::slice::from_ref(&recorded.event)).unwrap();
        }
        self
    }

    fn store(&self) -> Store {
        Store::new(StorePlace::in_folder(self.folder.path()))
    }

    fn costs(&self) -> Costs {
        self.store().costs().unwrap()
    }

    fn results(&self) -> Vec<String> {
        let attempts = self.costs().attempts(None).unwrap();
        attempts.into_iter().map(|entry| entry.result).collect()
    }
}

/// One attempt by an agent whose costs are real.
fn paid(history: History, at: i64, dollars: f64) -> History {
    let mut started = history.started("A");
    started.at = at - 1;
    let mut paid = started.ended(Verdict::Progress, costing(dollars));
    for recorded in &mut paid.events {
        if let Event::AttemptStarted(start) = &mut recorded.event {
            start.agent = "claude".into();
        }
    }
    paid
}

#[test]
fn an_attempt_is_a_row_with_all_its_figures() {
    let history = History::new().started("A").ended(Verdict::Progress, costing(0.5));
    let repo = Repo::new();
    let attempts = repo.write(&history.events, "r").costs().attempts(Some("r")).unwrap();
    let [entry] = attempts.as_slice() else { panic!("{attempts:?}") };
    assert_eq!((entry.story.as_str(), entry.title.as_str()), ("A", "Title of A"));
    assert_eq!((entry.stated, entry.counted), (Some(Usd::of(0.5)), Usd::of(0.5)));
    assert_eq!(entry.usage, Usage { cost_usd: None, ..costing(0.0) });
    assert_eq!((entry.elapsed_ms, entry.at), (100, history.at));
    assert_eq!(repo.costs().attempts(Some("another")).unwrap(), []);
}

#[test]
fn the_result_of_an_attempt_follows_the_events() {
    let done = || History::new().tried("A", Verdict::Done);
    let question = Escalation { kind: EscalationKind::Claim, ..escalation("is it?") };
    let doubtful = Event::QuestionRaised { story: id("A"), question };
    let (error, fingerprint) = (String::new(), String::new());
    let rejected = Event::ClaimRejected { story: id("A"), error, fingerprint, unfounded: false };
    let lost = Event::AttemptLost {
        attempt: "attempt 1".into(),
        story: id("A"),
        counted: Usd::from_cents(300),
    };
    for (history, result) in [
        (History::new().started("A"), "running"),
        (History::new().started("A").then(lost), "cut_off"),
        (done(), "claimed"),
        (done().planned("A").closed("A"), "closed"),
        (done().then(rejected), "rejected"),
        (done().then(doubtful.clone()).answered("A", Answer::Retry), "rejected"),
        (done().then(doubtful.clone()).answered("A", Answer::Accept), "claimed"),
        (done().then(doubtful).answered("A", Answer::Abort), "claimed"),
        (History::new().tried("A", failed("x")).answered("A", Answer::Retry), "failed"),
        (History::new().tried("A", Verdict::Interrupted), "interrupted"),
    ] {
        let repo = Repo::new();
        assert_eq!(repo.write(&history.events, "r").results(), [result]);
    }
}

#[test]
fn the_assumed_cost_of_a_lost_attempt_is_spent() {
    let lost = Event::AttemptLost {
        attempt: "attempt 1".into(),
        story: id("A"),
        counted: Usd::from_cents(300),
    };
    let repo = Repo::new();
    repo.write(&History::new().started("A").then(lost).events, "r");
    let entry = repo.costs().attempts(None).unwrap().remove(0);
    assert_eq!((entry.stated, entry.counted), (None, Usd::from_cents(300)));
    assert_eq!(repo.costs().spent_since(0).unwrap(), Usd::from_cents(300));
    assert_eq!(repo.costs().by_model(None).unwrap()[0].counted, Usd::from_cents(300));
}

#[test]
fn each_model_has_its_part_and_the_rest_is_the_first_models() {
    let cost = |models: Vec<ModelUse>| AttemptCost { models, ..AttemptCost::default() };
    let models = |cost: AttemptCost| {
        let history = History::new().started("A").costing(Verdict::Progress, costing(5.0), cost);
        let repo = Repo::new();
        let parts = repo.write(&history.events, "r").costs().by_model(None).unwrap();
        let part = |entry: &AttemptCosts| {
            let dollars = entry.counted.as_f64();
            (entry.model.clone(), dollars, entry.usage.input_tokens)
        };
        parts.iter().map(part).collect::<Vec<_>>()
    };
    let named = |name: &str, dollars: f64, tokens: u64| (name.to_owned(), dollars, tokens);
    assert_eq!(models(cost(vec![])), [named("", 5.0, 10)]);
    let whole = cost(vec![used("large", 4, 7), used("small", 1, 3)]);
    assert_eq!(models(whole), [named("large", 4.0, 7), named("small", 1.0, 3)]);
    let part = cost(vec![used("large", 4, 7)]);
    assert_eq!(models(part), [named("", 1.0, 0), named("large", 4.0, 7)]);
}

#[test]
fn a_day_has_the_attempts_that_ended_in_it() {
    let history = paid(paid(paid(History::new(), 5, 1.0), DAY - 1, 2.0), DAY, 4.0);
    let repo = Repo::new();
    let costs = repo.write(&history.events, "r").costs();
    for (since, dollars) in [(0, 7), (DAY - 1, 6), (DAY, 4), (DAY + 1, 0)] {
        assert_eq!(costs.spent_since(since).unwrap(), Usd::from_cents(100 * dollars), "{since}");
    }
}

#[test]
fn an_older_journal_gets_the_rows_of_all_its_events() {
    let rejected = Event::CloseRefused { story: id("A"), error: String::new(), unfit: false };
    let history = paid(History::new(), 5, 1.5).tried("A", Verdict::Done).then(rejected).run(&[]);
    let repo = Repo::new();
    repo.write(&history.events, "r");
    let new = (repo.costs().attempts(None).unwrap(), repo.costs().by_model(None).unwrap());
    let old = rusqlite::Connection::open(repo.path()).unwrap();
    let before = super::super::tables::KNOWN - 3;
    old.execute_batch(super::super::tables::NO_HUMAN_SEALS).unwrap();
    old.execute_batch(
        "DROP TABLE runs; DROP TABLE attempts; DROP TABLE usage;
         ALTER TABLE events DROP COLUMN seal; ALTER TABLE events ADD COLUMN sum INTEGER;",
    )
    .unwrap();
    old.pragma_update(None, "user_version", before).unwrap();
    drop(old);
    let migrated = (repo.costs().attempts(None).unwrap(), repo.costs().by_model(None).unwrap());
    assert_eq!(migrated, new);
    assert_eq!(repo.results(), ["progress", "rejected"]);
}

#[test]
fn events_and_rows_are_written_together_or_not_at_all() {
    let repo = Repo::new();
    repo.write(&History::new().events, "r");
    let broken = rusqlite::Connection::open(repo.path()).unwrap();
    broken.execute_batch("DROP TABLE usage;").unwrap();
    let mut journal = repo.store().journal("PRD.json").unwrap();
    let before = journal.read(0).unwrap();
    let ended = History::new().started("A").ended(Verdict::Progress, costing(1.0));
    let events: Vec<Event> = ended.events.into_iter().map(|recorded| recorded.event).collect();
    journal.append("r", 9, &events).unwrap_err();
    assert_eq!(journal.read(0).unwrap(), before);
}

fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

/// One attempt for a dollar, with its own name.
fn one_dollar(name: &str, at: i64) -> History {
    let mut history = paid(History::new(), at, 1.0);
    for recorded in &mut history.events {
        match &mut recorded.event {
            Event::AttemptStarted(start) => start.attempt = name.to_owned(),
            Event::AttemptEnded(end) => end.attempt = name.to_owned(),
            _ => {}
        }
    }
    history
}

impl Repo {
    fn user_costs(&self, folder: &Path) -> UserCosts {
        self.store().user_costs(folder, "here".to_owned(), &["mock"]).unwrap()
    }
}

#[test]
fn user_costs_copy_missing_attempts_and_no_invented_costs() {
    let repo = Repo::new();
    let mock =
        paid(History::new(), now(), 1.0).started("B").ended(Verdict::Progress, costing(64.0));
    repo.write(&mock.events, "r");
    let folder = repo.folder.path().join("state/ralph");
    let user = repo.user_costs(&folder);
    for _ in 0..2 {
        user.take_over_now().unwrap();
        assert_eq!(user.spent_since(0).unwrap(), Usd::from_cents(100));
    }
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&folder.join("spending.db"))), (0o700, 0o600));
    assert_eq!(user_spent_since(&folder, 0), Some(Usd::from_cents(100)));
}

#[test]
fn costs_copied_in_the_background_are_written_at_the_end() {
    let repo = Repo::new();
    let folder = repo.folder.path().join("state");
    let user = repo.user_costs(&folder);
    for name in ["one", "two", "three"] {
        repo.write(&one_dollar(name, now()).events, "r");
        user.take_over().unwrap();
    }
    drop(user);
    assert_eq!(user_spent_since(&folder, 0), Some(Usd::from_cents(300)));
}

#[test]
fn the_next_run_copies_costs_that_a_crash_left_out() {
    let (repo, hour) = (Repo::new(), DAY / 24);
    let folder = repo.folder.path().join("state");
    // Too old for a first look, and the rest in whatever order.
    let ends = [("old", 8 * DAY), ("late", 2 * hour), ("week", 6 * DAY), ("new", hour)];
    for (name, age) in ends {
        repo.write(&one_dollar(name, now() - age).events, "r");
    }
    repo.user_costs(&folder).take_over_now().unwrap();
    assert_eq!(user_spent_since(&folder, 0), Some(Usd::from_cents(300)));
    // Recorded by another work tree's run, with an earlier end than the latest known.
    repo.write(&one_dollar("other", now() - hour - hour / 2).events, "r");
    repo.user_costs(&folder).take_over_now().unwrap();
    assert_eq!(user_spent_since(&folder, 0), Some(Usd::from_cents(400)));
}

#[test]
fn simultaneous_runs_lose_no_entry() {
    let state = tempfile::tempdir().unwrap();
    let folder = Arc::new(state.path().join("ralph"));
    let (runs, each) = (4, 8);
    let together = Arc::new(Barrier::new(runs));
    let threads = (0..runs).map(|run| {
        let (folder, together) = (Arc::clone(&folder), Arc::clone(&together));
        std::thread::spawn(move || {
            let repo = Repo::new();
            let costs = repo.user_costs(&folder);
            together.wait();
            for number in 0..each {
                repo.write(&one_dollar(&format!("{run} {number}"), now()).events, "r");
                costs.take_over_now().unwrap();
            }
        })
    });
    threads.collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().unwrap());
    let all = u64::try_from(runs * each).unwrap();
    assert_eq!(user_spent_since(&folder, 0), Some(Usd::from_cents(100 * all)));
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let repo = Repo::new();
    std::fs::write(repo.folder.path().join("file"), "").unwrap();
    let folder = repo.folder.path().join("file/ralph");
    let error = repo.store().user_costs(&folder, String::new(), &[]).err().unwrap().to_string();
    assert!(error.contains("file/ralph/spending.db"), "{error}");
    assert_eq!(user_spent_since(&repo.folder.path().join("nowhere"), 0), None);
}

/// Much longer than it takes.
const HANGS: Duration = Duration::from_secs(10);

#[test]
fn an_error_in_the_background_is_returned_by_the_next_call_even_if_more_is_asked_all_the_time() {
    let repo = Repo::new();
    let folder = repo.folder.path().join("state");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("spending.db"), "this is no database, and long enough").unwrap();
    let user = repo.user_costs(&folder);
    assert!(user.take_over_now().unwrap_err().to_string().contains("spending.db"));
    let asked = Instant::now();
    let error = std::iter::repeat_with(|| {
        std::thread::yield_now();
        user.take_over()
    });
    let error = error.take_while(|_| asked.elapsed() < HANGS).find_map(Result::err);
    assert!(error.expect("an error within the time").to_string().contains("spending.db"));
}

#[test]
fn the_state_folder_is_where_the_environment_says() {
    for (state, home, folder) in [
        (Some("/s"), Some("/h"), Some("/s/ralph")),
        (None, Some("/h"), Some("/h/.local/state/ralph")),
        (Some(""), Some("/h"), Some("/h/.local/state/ralph")),
        (Some("relative"), Some("/h"), Some("/h/.local/state/ralph")),
        (None, Some("relative"), None),
        (None, None, None),
    ] {
        let env = |name: &str| match name {
            "XDG_STATE_HOME" => state.map(str::to_owned),
            "HOME" => home.map(str::to_owned),
            _ => None,
        };
        assert_eq!(state_folder(&env), folder.map(PathBuf::from), "{state:?} {home:?}");
    }
}
