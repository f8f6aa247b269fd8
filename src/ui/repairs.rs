//! What untrusted code changed and ralph put back, in words.

use crate::model::{BranchLoss, Event, HeldKind, Untrusted, Violation, visible_line};

use super::look::{Line, TextLine, Tone, labeled, listed};

const FILTERED: &str = "cannot restore, because of its filter in .gitattributes: ";
const OBJECTS_GONE: &str = "cannot restore, because git deleted their commits: ";
const BLOCKED: &str = "cannot restore, because something else is in the way: ";

/// None for other events. Earlier versions recorded each kind as an event of its own.
pub fn violation_in(event: &Event) -> Option<(Untrusted, Violation)> {
    let held = |whose, paths: &[String], kept: &str| Violation::Held {
        whose,
        paths: paths.to_vec(),
        kept: kept.to_owned(),
        claims: false,
    };
    let by_agent = match event {
        Event::Repaired { after, violation, .. } => return Some((*after, violation.clone())),
        Event::FilesPutBack { paths, snapshot, blocked, .. } => Violation::UserFiles {
            lost: paths.clone(),
            blocked: blocked.clone(),
            changed: Vec::new(),
            kept: snapshot.clone(),
        },
        Event::StashesPutBack { messages, .. } => {
            Violation::Stashes { messages: messages.clone(), new: Vec::new() }
        }
        Event::SetupPutBack { names, kept, .. } => held(HeldKind::GitSetup, names, kept),
        Event::InstructionsPutBack { path, kept, .. } => {
            let paths = std::slice::from_ref(path);
            held(HeldKind::Instructions, paths, kept.as_deref().unwrap_or_default())
        }
        _ => return None,
    };
    Some((Untrusted::Attempt, by_agent))
}

pub fn lines(at: i64, after: Untrusted, violation: &Violation) -> Vec<Line> {
    let (who, whose) = match after {
        Untrusted::Attempt => ("the agent", "the agent's"),
        Untrusted::Gates => ("the gates", "the gates'"),
        Untrusted::Baseline => ("the baseline", "the baseline's"),
    };
    let line = |what: &str, names: &[String], figure| restored(at, what, names, figure);
    match violation {
        Violation::Held { whose: kind, paths, kept, .. } => {
            let what = match kind {
                HeldKind::GitSetup => "git configuration or hooks",
                HeldKind::Instructions => "your instructions",
                HeldKind::Settings => "ralph's settings",
                HeldKind::AgentSettings => "settings of agents",
                HeldKind::GateScripts => "scripts of gates",
            };
            let version = format!("{whose} version: {}", visible_line(kept));
            let version = (!kept.is_empty()).then_some(version);
            vec![line(&format!("{what} that {who} changed"), paths, version)]
        }
        Violation::Stashes { messages, new } => {
            let dropped = line(&format!("stashes that {who} dropped"), messages, None);
            let what = format!("there are stashes that were not there before {who}: ");
            let more = labeled(at, Tone::Warning, what, listed(new)).into();
            told([(messages, dropped), (new, more)])
        }
        Violation::Index { paths } => vec![index(at, who, paths)],
        Violation::Refs { names, count, lost, kept } => {
            let version = kept.as_ref().map(|kept| format!("{whose} version: {kept}"));
            let what = format!("branches, tags or other refs that {who} changed");
            let restored = line(&what, names, with_count(names, *count, version));
            let gone = labeled(at, Tone::Warning, OBJECTS_GONE, listed(lost)).into();
            told([(names, restored), (lost, gone)])
        }
        Violation::PrivateFiles { .. }
        | Violation::IgnoredFiles { .. }
        | Violation::UserFiles { .. } => users_files(at, (who, whose), violation),
        Violation::Written { paths, blocked, kept } => {
            let copy = kept.as_ref().map(|kept| format!("{whose} version: {kept}"));
            let restored = line(&format!("files that {who} wrote"), paths, copy.clone());
            let in_the_way = labeled(at, Tone::Warning, FILTERED, listed(blocked)).figures(copy);
            told([(paths, restored), (blocked, in_the_way.into())])
        }
        // Notices and later events tell of these.
        _ if after == Untrusted::Attempt => vec![],
        other => after_gates(at, who, other),
    }
}

/// What is told in other words after an attempt.
fn after_gates(at: i64, who: &str, violation: &Violation) -> Vec<Line> {
    match violation {
        Violation::Locks { paths } => {
            let what = format!("removed locks that {who} left: ");
            vec![labeled(at, Tone::Warning, what, listed(paths)).into()]
        }
        Violation::OtherBranch { on } => {
            let what = format!("returned to the run's branch; {who} left it for ");
            vec![labeled(at, Tone::Warning, what, visible_line(on)).into()]
        }
        Violation::BranchLost { how } => {
            let what = match how {
                BranchLoss::Elsewhere => format!("{who} left the run's branch"),
                BranchLoss::Rewritten => format!("{who} changed the run's branch"),
            };
            let said = format!("{what}; branch and files are restored");
            vec![TextLine::at(at).with(Tone::Warning, said).into()]
        }
        _ => vec![],
    }
}

fn index(at: i64, who: &str, paths: &[String]) -> Line {
    if paths.is_empty() {
        let text = format!("restored git's index, which {who} removed or broke");
        return TextLine::at(at).with(Tone::Warning, text).into();
    }
    let what = format!("restored git's index where {who} changed it: ");
    labeled(at, Tone::Warning, what, listed(paths)).into()
}

/// If not all of them are named.
fn with_count(names: &[String], count: usize, figure: Option<String>) -> Option<String> {
    let all = (count > names.len()).then(|| format!("{count} in all"));
    let figures: Vec<String> = all.into_iter().chain(figure).collect();
    (!figures.is_empty()).then(|| figures.join(" · "))
}

/// Without the lines that name nothing.
fn told<const N: usize>(lines: [(&Vec<String>, Line); N]) -> Vec<Line> {
    lines.into_iter().filter(|(names, _)| !names.is_empty()).map(|(_, line)| line).collect()
}

fn restored(at: i64, what: &str, names: &[String], figure: Option<String>) -> Line {
    let what = format!("restored {what}: ");
    labeled(at, Tone::Warning, what, listed(names)).figures(figure).into()
}

fn users_files(at: i64, (who, whose): (&str, &str), violation: &Violation) -> Vec<Line> {
    let line = |what: &str, names: &[String], figure| restored(at, what, names, figure);
    match violation {
        Violation::PrivateFiles { restored, kept, changed, copies } => {
            let version = Some(format!("{whose} version: {}", visible_line(kept)));
            let copies = Some(format!("earlier versions are in {}", visible_line(copies)));
            let back = line(&format!("private files that {who} changed"), restored, version);
            let what = format!("{who} changed ignored files of yours: ");
            let stay = labeled(at, Tone::Warning, what, listed(changed)).figures(copies);
            told([(restored, back), (changed, stay.into())])
        }
        Violation::IgnoredFiles { lost, count, blocked, kept } => {
            let copy = Some(format!("a copy is in {}", visible_line(kept)));
            let what = format!("ignored files that {who} deleted or emptied");
            let restored = line(&what, lost, with_count(lost, *count, None));
            let in_the_way = labeled(at, Tone::Warning, BLOCKED, listed(blocked)).figures(copy);
            told([(lost, restored), (blocked, in_the_way.into())])
        }
        Violation::UserFiles { lost, blocked, changed, kept } => {
            let copy = kept.as_ref().map(|kept| format!("a copy is at {kept}"));
            let what = format!("uncommitted files that {who} deleted or reset");
            let restored = line(&what, lost, kept.clone());
            let in_the_way =
                labeled(at, Tone::Warning, BLOCKED, listed(blocked)).figures(copy.clone());
            let what = format!("{who} changed files of yours that git does not know: ");
            let other = labeled(at, Tone::Warning, what, listed(changed)).figures(copy);
            told([(lost, restored), (blocked, in_the_way.into()), (changed, other.into())])
        }
        _ => vec![],
    }
}
