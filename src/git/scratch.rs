//! A repository to try things out in.

use std::path::Path;

use git2::{Repository, RepositoryInitOptions};

use super::WorkTree;
use super::error::{Doing, GitError};
use super::snapshot::stage_all;

/// `git init` with an identity of its own and one commit of what is in the folder.
pub fn init_scratch(folder: &Path) -> Result<WorkTree, GitError> {
    let mut options = RepositoryInitOptions::new();
    options.initial_head("main").external_template(false).no_reinit(true);
    let repo = Repository::init_opts(folder, &options).doing("make a scratch repository")?;
    identify(&repo).doing("set who commits in the scratch repository")?;
    commit_all(&repo).doing("commit the scratch files")?;
    WorkTree::open(folder)
}

fn identify(repo: &Repository) -> Result<(), git2::Error> {
    let mut config = repo.config()?.open_level(git2::ConfigLevel::Local)?;
    config.set_bool("commit.gpgsign", false)?;
    config.set_str("user.name", "ralph")?;
    config.set_str("user.email", "ralph@localhost")
}

fn commit_all(repo: &Repository) -> Result<(), git2::Error> {
    let mut index = repo.index()?;
    stage_all(repo, &mut index, &mut |_| false)?;
    index.write()?;
    let tree = repo.find_tree(index.write_tree()?)?;
    let me = repo.signature()?;
    repo.commit(Some("HEAD"), &me, &me, "The files as they were\n", &tree, &[])?;
    Ok(())
}
