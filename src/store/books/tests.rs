use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Barrier};

use super::*;
use crate::core::event::{Answer, Event, Recorded};
use crate::core::signal::{Escalation, EscalationKind};
use crate::core::spending::{Bill, ModelUse};
use crate::core::tests::{History, escalation, failed, id};
use crate::core::verdict::Verdict;
use crate::store::journal::{Journal, Scope, SqliteJournal};

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
    let cost = Usd::dollars(dollars);
    ModelUse { model: model.into(), cost, input_tokens, ..ModelUse::default() }
}

struct Desk {
    folder: tempfile::TempDir,
}

impl Desk {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("journal.db")
    }

    fn write(&self, events: &[Recorded], run: &str) -> &Self {
        let scope = Scope { backlog: "PRD.json".into(), work_tree: String::new() };
        let mut journal = SqliteJournal::open(&self.path(), scope).unwrap();
        for recorded in events {
            journal.append(run, recorded.at, std::slice::from_ref(&recorded.event)).unwrap();
        }
        self
    }

    fn books(&self) -> Books {
        Books::open(&self.path()).unwrap()
    }

    fn results(&self) -> Vec<String> {
        let attempts = self.books().attempts(None).unwrap();
        attempts.into_iter().map(|entry| entry.result).collect()
    }
}

/// One attempt by an agent whose money is real.
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
    let desk = Desk::new();
    let attempts = desk.write(&history.events, "r").books().attempts(Some("r")).unwrap();
    let [entry] = attempts.as_slice() else { panic!("{attempts:?}") };
    assert_eq!((entry.story.as_str(), entry.title.as_str()), ("A", "Title of A"));
    assert_eq!((entry.stated, entry.counted), (Some(Usd::of(0.5)), Usd::of(0.5)));
    assert_eq!(entry.usage, Usage { cost_usd: None, ..costing(0.0) });
    assert_eq!((entry.elapsed_ms, entry.at), (100, history.at));
    assert_eq!(desk.books().attempts(Some("another")).unwrap(), []);
}

#[test]
fn what_came_of_an_attempt_follows_the_events() {
    let done = || History::new().tried("A", Verdict::Done);
    let question = Escalation { kind: EscalationKind::Claim, ..escalation("is it?") };
    let doubtful = Event::QuestionRaised { story: id("A"), question };
    let (error, fingerprint) = (String::new(), String::new());
    let rejected = Event::ClaimRejected { story: id("A"), error, fingerprint, unfounded: false };
    let lost = Event::AttemptLost {
        attempt: "attempt 1".into(),
        story: id("A"),
        counted: Usd::dollars(3),
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
        let desk = Desk::new();
        assert_eq!(desk.write(&history.events, "r").results(), [result]);
    }
}

#[test]
fn what_was_assumed_for_a_lost_attempt_is_spent() {
    let lost = Event::AttemptLost {
        attempt: "attempt 1".into(),
        story: id("A"),
        counted: Usd::dollars(3),
    };
    let desk = Desk::new();
    desk.write(&History::new().started("A").then(lost).events, "r");
    let entry = desk.books().attempts(None).unwrap().remove(0);
    assert_eq!((entry.stated, entry.counted), (None, Usd::dollars(3)));
    assert_eq!(desk.books().spent_since(0).unwrap(), Usd::dollars(3));
    assert_eq!(desk.books().by_model(None).unwrap()[0].counted, Usd::dollars(3));
}

#[test]
fn each_model_has_its_part_and_the_rest_is_the_first_ones() {
    let bill = |models: Vec<ModelUse>| Bill { models, ..Bill::default() };
    let models = |bill: Bill| {
        let history = History::new().started("A").billed(Verdict::Progress, costing(5.0), bill);
        let desk = Desk::new();
        let parts = desk.write(&history.events, "r").books().by_model(None).unwrap();
        let part = |entry: &Entry| {
            let dollars = entry.counted.as_f64();
            (entry.model.clone(), dollars, entry.usage.input_tokens)
        };
        parts.iter().map(part).collect::<Vec<_>>()
    };
    let named = |name: &str, dollars: f64, tokens: u64| (name.to_owned(), dollars, tokens);
    assert_eq!(models(bill(vec![])), [named("", 5.0, 10)]);
    let whole = bill(vec![used("large", 4, 7), used("small", 1, 3)]);
    assert_eq!(models(whole), [named("large", 4.0, 7), named("small", 1.0, 3)]);
    let part = bill(vec![used("large", 4, 7)]);
    assert_eq!(models(part), [named("", 1.0, 0), named("large", 4.0, 7)]);
}

#[test]
fn a_day_has_what_ended_in_it() {
    let history = paid(paid(paid(History::new(), 5, 1.0), DAY - 1, 2.0), DAY, 4.0);
    let desk = Desk::new();
    let books = desk.write(&history.events, "r").books();
    for (since, dollars) in [(0, 7), (DAY - 1, 6), (DAY, 4), (DAY + 1, 0)] {
        assert_eq!(books.spent_since(since).unwrap(), Usd::dollars(dollars), "{since}");
    }
}

#[test]
fn an_older_journal_gets_the_rows_of_all_its_events() {
    let rejected = Event::CloseRefused { story: id("A"), error: String::new(), unfit: false };
    let history = paid(History::new(), 5, 1.5).tried("A", Verdict::Done).then(rejected).run(&[]);
    let desk = Desk::new();
    desk.write(&history.events, "r");
    let new = (desk.books().attempts(None).unwrap(), desk.books().by_model(None).unwrap());
    let old = Connection::open(desk.path()).unwrap();
    let before = schema::KNOWN - 1;
    old.execute_batch("DROP TABLE runs; DROP TABLE attempts; DROP TABLE usage;").unwrap();
    old.pragma_update(None, "user_version", before).unwrap();
    drop(old);
    let migrated = (desk.books().attempts(None).unwrap(), desk.books().by_model(None).unwrap());
    assert_eq!(migrated, new);
    assert_eq!(desk.results(), ["progress", "rejected"]);
}

#[test]
fn events_and_rows_are_written_together_or_not_at_all() {
    let desk = Desk::new();
    desk.write(&History::new().events, "r");
    let broken = Connection::open(desk.path()).unwrap();
    broken.execute_batch("DROP TABLE usage;").unwrap();
    let scope = Scope { backlog: "PRD.json".into(), work_tree: String::new() };
    let mut journal = SqliteJournal::open(&desk.path(), scope).unwrap();
    let before = journal.read(0).unwrap();
    let ended = History::new().started("A").ended(Verdict::Progress, costing(1.0));
    let events: Vec<Event> = ended.events.into_iter().map(|recorded| recorded.event).collect();
    journal.append("r", 9, &events).unwrap_err();
    assert_eq!(journal.read(0).unwrap(), before);
}

#[test]
fn the_users_books_take_over_what_they_do_not_have_and_nothing_made_up() {
    let desk = Desk::new();
    let mock = paid(History::new(), 5, 1.0).started("B").ended(Verdict::Progress, costing(64.0));
    desk.write(&mock.events, "r");
    let folder = desk.folder.path().join("state/ralph");
    let mut user = UserBooks::open(&folder).unwrap();
    for _ in 0..2 {
        user.take_over(&desk.books(), "here", 0).unwrap();
        assert_eq!(user.spent_since(0).unwrap(), Usd::dollars(1));
    }
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&folder.join(FILE))), (0o700, 0o600));
    assert_eq!(UserBooks::look(&folder).unwrap().spent_since(0).unwrap(), Usd::dollars(1));
}

#[test]
fn runs_at_the_same_time_lose_no_entry() {
    let state = tempfile::tempdir().unwrap();
    let folder = Arc::new(state.path().join("ralph"));
    let (runs, each) = (4, 8);
    let together = Arc::new(Barrier::new(runs));
    let threads = (0..runs).map(|run| {
        let (folder, together) = (Arc::clone(&folder), Arc::clone(&together));
        std::thread::spawn(move || {
            let mut books = UserBooks::open(&folder).unwrap();
            together.wait();
            for number in 0..each {
                let mut history = paid(History::new(), 5, 1.0);
                for recorded in &mut history.events {
                    let own = format!("{run} {number}");
                    match &mut recorded.event {
                        Event::AttemptStarted(start) => start.attempt = own,
                        Event::AttemptEnded(end) => end.attempt = own,
                        _ => {}
                    }
                }
                let desk = Desk::new();
                desk.write(&history.events, "r");
                books.take_over(&desk.books(), "here", 0).unwrap();
            }
        })
    });
    threads.collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().unwrap());
    let all = u64::try_from(runs * each).unwrap();
    let books = UserBooks::open(&folder).unwrap();
    assert_eq!(books.spent_since(0).unwrap(), Usd::dollars(all));
}

#[test]
fn a_folder_that_cannot_be_had_is_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let error = UserBooks::open(&folder.path().join("file/ralph")).err().unwrap().to_string();
    assert!(error.contains("file/ralph/spending.db"), "{error}");
    assert!(UserBooks::look(&folder.path().join("nowhere")).is_none());
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
