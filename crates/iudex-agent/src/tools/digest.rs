//! Tells whether anything below the work directory changed, by names, sizes and times. Reads no file.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::walk;

/// Entries that are looked at.
const MOST_ENTRIES: usize = 50_000;

/// Directories that test runners and compilers write on every run: no progress of the work.
const CACHES: [&str; 9] = [
    "__pycache__",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    "node_modules",
    ".venv",
    ".tox",
    ".nyc_output",
    ".gradle",
];

pub(super) fn of(work_dir: &Path) -> String {
    let walk = walk::builder(work_dir, work_dir)
        .filter_entry(|entry| {
            let name = entry.file_name();
            let is_cache = name == ".git"
                || name == ".coverage"
                || CACHES.iter().any(|cache| name == *cache)
                || (name == "target" && entry.path().join("CACHEDIR.TAG").exists());
            !is_cache
        })
        .build();
    let (mut sum, mut mixed, mut entries) = (0_u64, 0_u64, 0_u64);
    for entry in walk.filter_map(Result::ok).take(MOST_ENTRIES) {
        let mut hasher = DefaultHasher::new();
        entry.path().hash(&mut hasher);
        // The times of a directory change with temporary files in it; its entries are looked at themselves.
        if let Ok(facts) = entry.metadata()
            && !facts.is_dir()
        {
            (facts.mode(), facts.len(), facts.ino()).hash(&mut hasher);
            (facts.mtime(), facts.mtime_nsec(), facts.ctime(), facts.ctime_nsec()).hash(&mut hasher);
        }
        let hash = hasher.finish();
        sum = sum.wrapping_add(hash);
        mixed ^= hash.rotate_left(17).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        entries += 1;
    }
    format!("{sum:016x}{mixed:016x}{entries:x}")
}
