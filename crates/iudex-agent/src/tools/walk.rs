//! Files below a directory as a person would list them: what git ignores is left out, `.git` always.

use std::path::Path;

use ignore::{DirEntry, WalkBuilder};

/// A walk below `root`, in the order of names. Links are not followed.
pub(super) fn builder(root: &Path, work_dir: &Path) -> WalkBuilder {
    let in_repository = work_dir.ancestors().any(|directory| directory.join(".git").exists());
    let mut builder = WalkBuilder::new(root);
    builder
        .hidden(false)
        .git_global(false)
        .ignore(false)
        // Outside a repository `.gitignore` files count too, but none of directories above the work directory.
        .require_git(in_repository)
        .parents(in_repository || root != work_dir)
        .follow_links(false)
        .filter_entry(|entry| entry.file_name() != ".git")
        .sort_by_file_name(Ord::cmp);
    builder
}

/// The regular files below `root`.
pub(super) fn files(root: &Path, work_dir: &Path) -> impl Iterator<Item = DirEntry> {
    builder(root, work_dir)
        .build()
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()))
}
