//! Tells whether anything below the work directory changed, by names, sizes and times. Reads no file.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use super::walk;
use crate::directories;

/// Entries that are looked at.
const MOST_ENTRIES: u64 = 50_000;

pub(super) fn of(work_dir: &Path) -> String {
    let walk = walk::builder(work_dir, work_dir)
        .filter_entry(|entry| {
            let name = entry.file_name();
            let is_cache = name == ".git"
                || name == ".coverage"
                || directories::is_cache(name)
                || (name == "target" && entry.path().join("CACHEDIR.TAG").exists());
            !is_cache
        })
        .build();
    let (mut sum, mut mixed, mut entries) = (0_u64, 0_u64, 0_u64);
    for entry in walk.filter_map(Result::ok) {
        if entries >= MOST_ENTRIES {
            // What lies behind is not seen: a digest like no other, so that every command counts as a possible change.
            static NEXT: AtomicU64 = AtomicU64::new(0);
            return format!("unknown {}", NEXT.fetch_add(1, Ordering::Relaxed));
        }
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
