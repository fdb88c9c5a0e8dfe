//! What a command prints, as it comes: head and tail in memory, digest and length of the whole, the file.
//!
//! Never: memory that grows with the output.

use std::path::PathBuf;

use sha2::{Digest as _, Sha256};

use crate::command::{Captured, OutputSpec};
use crate::spool::{self, Spool};

/// Takes the stream in pieces of any size.
pub(crate) struct Capture {
    head_limit: usize,
    tail_limit: usize,
    head: Vec<u8>,
    /// A circle once it is full; `next` is then its oldest byte.
    tail: Vec<u8>,
    next: usize,
    total: u64,
    digest: Sha256,
    spool: Option<Spool>,
    file_error: Option<String>,
}

impl Capture {
    pub(crate) fn new(spec: &OutputSpec) -> Self {
        let (spool, file_error) = match &spec.file {
            None => (None, None),
            Some(path) => match Spool::create(path, spool::HEAD, spool::TAIL) {
                Ok(spool) => (Some(spool), None),
                Err(error) => (None, Some(format!("cannot create {}: {error}", path.display()))),
            },
        };
        Self {
            head_limit: spec.head,
            tail_limit: spec.tail,
            head: Vec::new(),
            tail: Vec::new(),
            next: 0,
            total: 0,
            digest: Sha256::new(),
            spool,
            file_error,
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        self.digest.update(bytes);
        self.write_file(bytes);
        let (head, rest) = bytes.split_at(bytes.len().min(self.head_limit - self.head.len()));
        self.head.extend_from_slice(head);
        self.push_tail(rest);
    }

    fn push_tail(&mut self, bytes: &[u8]) {
        // Of a piece longer than the circle only its end can stay.
        let mut bytes = &bytes[bytes.len().saturating_sub(self.tail_limit)..];
        let (fill, rest) = bytes.split_at(bytes.len().min(self.tail_limit - self.tail.len()));
        self.tail.extend_from_slice(fill);
        bytes = rest;
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(self.tail_limit - self.next));
            self.tail[self.next..self.next + now.len()].copy_from_slice(now);
            self.next = (self.next + now.len()) % self.tail_limit;
            bytes = later;
        }
    }

    fn write_file(&mut self, bytes: &[u8]) {
        let Some(spool) = &mut self.spool else { return };
        if let Err(error) = spool.write(bytes) {
            self.file_error = Some(format!("cannot write the output file: {error}"));
            if let Some(spool) = self.spool.take() {
                spool.discard();
            }
        }
    }

    pub(crate) fn finish(mut self) -> Captured {
        self.tail.rotate_left(self.next);
        let file = self.spool.take().and_then(|spool| self.finish_file(spool));
        Captured {
            omitted: self.total - self.head.len() as u64 - self.tail.len() as u64,
            head: self.head,
            tail: self.tail,
            total: self.total,
            sha256: hexadecimal(&self.digest.finalize()),
            file,
            file_error: self.file_error,
        }
    }

    fn finish_file(&mut self, spool: Spool) -> Option<PathBuf> {
        spool.finish().map_err(|error| self.file_error = Some(format!("cannot complete the output file: {error}"))).ok()
    }
}

pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]])
        .map(char::from)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(head: usize, tail: usize, chunks: &[&[u8]]) -> Captured {
        let mut capture = Capture::new(&OutputSpec { head, tail, file: None });
        for chunk in chunks {
            capture.push(chunk);
        }
        capture.finish()
    }

    #[test]
    fn output_that_fits_has_no_gap() {
        let captured = captured(4, 6, &[b"ab", b"cdefghij"]);
        assert_eq!((captured.head.as_slice(), captured.tail.as_slice()), (&b"abcd"[..], &b"efghij"[..]));
        assert_eq!((captured.omitted, captured.total), (0, 10));
        assert_eq!(captured.text(), "abcdefghij");
    }

    #[test]
    fn the_tail_is_the_end_in_order_however_the_pieces_fall() {
        let whole = b"abcdefghijklmnopqrstuvwxyz";
        for size in 1..=whole.len() {
            let chunks: Vec<&[u8]> = whole.chunks(size).collect();
            let captured = captured(4, 6, &chunks);
            assert_eq!(captured.head, b"abcd", "pieces of {size}");
            assert_eq!(captured.tail, b"uvwxyz", "pieces of {size}");
            assert_eq!((captured.omitted, captured.total), (16, 26));
            // Of the whole stream, not of what was kept.
            assert_eq!(captured.sha256, "71c480df93d6ae2f1efad1447c66c9525e316218cf51fc8d9ed832f2daf18b73");
        }
    }

    #[test]
    fn nothing_is_kept_in_memory_when_nothing_is_asked_for() {
        let captured = captured(0, 0, &[b"abc", b"def"]);
        assert_eq!((captured.omitted, captured.total), (6, 6));
        assert!(captured.head.is_empty() && captured.tail.is_empty());
    }

    #[test]
    fn a_file_that_cannot_be_made_is_told_and_loses_nothing_else() {
        let mut capture =
            Capture::new(&OutputSpec { head: 10, tail: 10, file: Some("/nonexistent-directory/output".into()) });
        capture.push(b"abc");
        let captured = capture.finish();
        assert_eq!(captured.text(), "abc");
        assert_eq!(captured.file, None);
        assert!(captured.file_error.unwrap().contains("/nonexistent-directory/output"));
    }
}
