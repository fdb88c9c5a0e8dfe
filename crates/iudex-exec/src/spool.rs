//! The file with a command's output: the first 8 and the last 56 MiB, however much there was.
//!
//! Never: fail the command. What goes wrong with the file is remembered and told.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Bytes from the start that are kept.
pub(crate) const HEAD: u64 = 8 << 20;
/// Bytes from the end that are kept.
pub(crate) const TAIL: u64 = 56 << 20;

/// Writes the stream as it comes: up to `head + tail` bytes straight on; after that the part behind the head is a
/// circle, which `finish` lays out in order.
#[derive(Debug)]
pub(crate) struct Spool {
    path: PathBuf,
    file: File,
    head: u64,
    tail: u64,
    written: u64,
}

impl Spool {
    /// Creates the file with mode 0600; an older one is emptied.
    pub(crate) fn create(path: &Path, head: u64, tail: u64) -> io::Result<Self> {
        let file = private(path)?;
        Ok(Self { path: path.to_owned(), file, head, tail, written: 0 })
    }

    /// Takes the next bytes of the stream.
    pub(crate) fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let linear = self.head + self.tail;
            let room = if self.written < linear {
                linear - self.written
            } else {
                let offset = (self.written - linear) % self.tail;
                if offset == 0 {
                    self.file.seek(SeekFrom::Start(self.head))?;
                }
                self.tail - offset
            };
            let (now, later) = bytes.split_at(bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX)));
            self.file.write_all(now)?;
            self.written += now.len() as u64;
            bytes = later;
        }
        Ok(())
    }

    /// Lays the file out: head, a line that says how many bytes are missing, tail.
    pub(crate) fn finish(mut self) -> io::Result<PathBuf> {
        let linear = self.head + self.tail;
        if self.written <= linear {
            return Ok(self.path);
        }
        let omitted = self.written - linear;
        let oldest = omitted % self.tail;
        let ordered_path = self.path.with_added_extension("part");
        let laid_out = (|| {
            let mut ordered = private(&ordered_path)?;
            self.copy(0, self.head, &mut ordered)?;
            ordered.write_all(marker(omitted).as_bytes())?;
            self.copy(self.head + oldest, self.tail - oldest, &mut ordered)?;
            self.copy(self.head, oldest, &mut ordered)?;
            fs::rename(&ordered_path, &self.path)
        })();
        if laid_out.is_err() {
            let _ = fs::remove_file(&ordered_path);
        }
        laid_out.map(|()| self.path)
    }

    /// Removes the file: an incomplete one would be taken for the whole. A device is not ours to remove.
    pub(crate) fn discard(self) {
        if self.file.metadata().is_ok_and(|metadata| metadata.is_file()) {
            let _ = fs::remove_file(&self.path);
        }
    }

    fn copy(&mut self, from: u64, length: u64, to: &mut File) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(from))?;
        let copied = io::copy(&mut (&self.file).take(length), to)?;
        if copied == length { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

/// The line that stands for what was left out.
pub(crate) fn marker(omitted: u64) -> String {
    format!("\n[... {omitted} bytes left out ...]\n")
}

fn private(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(0o600).open(path)?;
    // The mode above counts only for a new file.
    if file.metadata()?.is_file() {
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spooled(chunks: &[&[u8]]) -> (Vec<u8>, u32, usize) {
        let directory = tempfile::tempdir().unwrap();
        let mut spool = Spool::create(&directory.path().join("out"), 4, 6).unwrap();
        for chunk in chunks {
            spool.write(chunk).unwrap();
        }
        let path = spool.finish().unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        (fs::read(&path).unwrap(), mode, fs::read_dir(directory.path()).unwrap().count())
    }

    #[test]
    fn what_fits_is_kept_byte_for_byte() {
        assert_eq!(spooled(&[]).0, b"");
        assert_eq!(spooled(&[b"abc"]).0, b"abc");
        assert_eq!(spooled(&[b"abcd", b"efghij"]).0, b"abcdefghij");
    }

    #[test]
    fn of_more_the_head_and_the_tail_stand_in_order_with_the_gap_named() {
        let expected = |head: &str, omitted: u64, tail: &str| format!("{head}{}{tail}", marker(omitted)).into_bytes();
        assert_eq!(spooled(&[b"abcdefghijk"]).0, expected("abcd", 1, "fghijk"));
        assert_eq!(spooled(&[b"abcdefghij", b"klmnop"]).0, expected("abcd", 6, "klmnop"));
        assert_eq!(spooled(&[b"abcdefghijklmnopqrstuvwxyz"]).0, expected("abcd", 16, "uvwxyz"));
        let single: Vec<&[u8]> = b"abcdefghijklmnopqrstuvwxyz".chunks(1).collect();
        assert_eq!(spooled(&single).0, expected("abcd", 16, "uvwxyz"));
    }

    #[test]
    fn the_file_is_for_the_owner_alone_and_nothing_lies_beside_it() {
        let (_, mode, files) = spooled(&[b"abcdefghijklmnopqrstuvwxyz"]);
        assert_eq!(mode, 0o600);
        assert_eq!(files, 1);
    }

    #[test]
    fn an_older_file_that_others_can_read_becomes_private_and_empty() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out");
        fs::write(&path, "old and longer").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let mut spool = Spool::create(&path, 4, 6).unwrap();
        spool.write(b"new").unwrap();
        spool.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
