//! A tracked folder that became a link: nothing behind it is read, written or deleted.

use std::fs;
use std::path::PathBuf;

use crate::model::Base;
use crate::workspace::{ClosedStory, GitError, Replacement, UndoRequest, WorkTree};

use super::sandbox::{CommitRequest, Sandbox, story};

/// What is behind the link, in the files that the tree has too.
const THEIRS: &str = "theirs\n";

/// A closed story changed `docs/c`, removed `docs/old` and made `docs/new` and `docs/deep/new`.
/// After it, `docs` becomes a link to a folder with files of the same names.
struct Scene {
    repo: Sandbox,
    tree: WorkTree,
    /// Before the story.
    before: Base,
    closing: ClosedStory,
    /// Its work, shelved.
    shelved: String,
}

impl Scene {
    fn new() -> Self {
        let repo = Sandbox::new();
        repo.write("docs/old", "old\n").commit_all("more");
        repo.git(["branch", "earlier"]);
        let tree = repo.open();
        let before = tree.base().unwrap();
        let work = || {
            repo.write("docs/c", "c1\n").write("docs/new", "new\n").delete("docs/old");
            repo.write("docs/deep/new", "new\n");
        };
        work();
        let shelved = tree.shelve(&story("S-2"), 1, &before, &[]).unwrap().unwrap();
        work();
        let message = "S-1: x\n\nRalph-Story: S-1\nRalph-Backlog: PRD.json\n";
        let request = CommitRequest { base: Some(&before), message, ..CommitRequest::default() };
        request.commit(&tree).unwrap();
        let closing = tree.newest_closing(&story("S-1"), "PRD.json").unwrap().unwrap();
        for name in ["c", "old", "new", "deep/new"] {
            repo.write(repo.beside("outside").join(name), THEIRS);
        }
        Self { repo, tree, before, closing, shelved }
    }

    fn plant(&self, case: &str) {
        if case == "ignored" {
            self.repo.write(".git/info/exclude", "docs\n");
        }
        self.repo.delete("docs").link("docs", "../outside");
    }

    fn theirs(&self) -> Vec<(PathBuf, String)> {
        let folder = self.repo.beside("outside");
        let mut found = Vec::new();
        for name in ["c", "old", "new", "deep/new"] {
            let text = fs::read_to_string(folder.join(name)).unwrap_or_default();
            found.push((folder.join(name), text));
        }
        let count = |folder: PathBuf| fs::read_dir(folder).map_or(0, Iterator::count);
        found.push((folder.clone(), count(folder.clone()).to_string()));
        found.push((folder.join("deep"), count(folder.join("deep")).to_string()));
        found
    }
}

type Act = fn(&Scene) -> Result<(), GitError>;

const ACTS: [(&str, Act); 10] = [
    ("shelve", |it| it.tree.shelve(&story("S-3"), 1, &it.before, &[]).map(drop)),
    ("shelve all but a file", |it| {
        let except = [PathBuf::from("docs/c")];
        it.tree.shelve(&story("S-3"), 1, &it.before, &except).map(drop)
    }),
    ("shelve all but the link", |it| {
        let except = [PathBuf::from("docs")];
        it.tree.shelve(&story("S-3"), 1, &it.before, &except).map(drop)
    }),
    ("unshelve", |it| it.tree.unshelve(&it.shelved, &[]).map(drop)),
    ("restore", |it| {
        let kept = it.tree.find_snapshot(1).unwrap();
        it.tree.restore(&kept, &[], &[]).map(drop)
    }),
    ("restore a file", |it| {
        let kept = it.tree.find_snapshot(1).unwrap();
        it.tree.restore(&kept, &[PathBuf::from("docs/c")], &[]).map(drop)
    }),
    ("checkpoint", |it| it.tree.checkpoint("text").map(drop)),
    ("undo", |it| {
        let replaced = [Replacement::new("PRD.json".as_ref(), b"{}")];
        let request = UndoRequest { closing: &it.closing, replaced: &replaced, message: "undo" };
        it.tree
            .prepare_undo(&request)
            .and_then(|ready| it.tree.carry_out_undo(&ready, &[]))
            .map(drop)
    }),
    ("switch", |it| it.repo.open().switch_to("earlier").map(drop)),
    ("repair", |it| {
        let paths = ["docs/c", "docs/old", "docs/new"].map(PathBuf::from);
        it.tree.repair_user_files(&it.before, &paths)
    }),
];

#[test]
fn nothing_behind_a_link_is_touched() {
    for (name, act) in ACTS {
        for plant in ["untracked", "ignored"] {
            let scene = Scene::new();
            scene.plant(plant);
            let before = scene.theirs();
            let done = act(&scene);
            let case = format!("{name}, {plant}: {done:?}");
            assert_eq!(scene.theirs(), before, "{case}");
            let is_replaced =
                ["shelve", "restore", "repair"].iter().any(|one| name.starts_with(one));
            let is_link = |path: PathBuf| fs::symlink_metadata(path).unwrap().is_symlink();
            assert_eq!(is_link(scene.repo.path("docs")), !is_replaced, "{case}");
            if is_replaced {
                done.unwrap();
                let expected = if name.starts_with("restore") { "c1\n" } else { "c0\n" };
                if name != "shelve all but a file" {
                    assert_eq!(scene.repo.read("docs/c"), expected, "{case}");
                }
                if plant == "ignored" {
                    let kept = scene.repo.path(".git/ralph/changed/replaced/docs");
                    assert!(is_link(kept), "{case}");
                }
            }
        }
    }
}
