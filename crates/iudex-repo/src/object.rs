//! Writes one small object into the private store without a git process: the commit of a snapshot lies on the way to
//! the first request of a run. Never: blobs or trees; those are git's.

use std::io::Write as _;
use std::path::Path;

use sha1::Digest as _;

use crate::error::SnapshotError;
use crate::paths::hex;
use crate::store::make_private_directory;

/// Bytes of one stored block of a zlib stream (RFC 1951, 3.2.4).
const MOST_STORED: usize = 0xffff;

/// Writes a commit of `tree` (hexadecimal) with this message and returns its name.
pub(crate) fn write_commit(objects: &Path, tree: &str, message: &str, sha256: bool) -> Result<String, SnapshotError> {
    let seconds = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since_epoch| since_epoch.as_secs());
    let who = format!("iudex <iudex@localhost> {seconds} +0000");
    write(objects, "commit", format!("tree {tree}\nauthor {who}\ncommitter {who}\n\n{message}").as_bytes(), sha256)
}

/// Writes a loose object: the zlib stream of `KIND LENGTH NUL BODY`, under the digest of the same bytes.
fn write(objects: &Path, kind: &str, body: &[u8], sha256: bool) -> Result<String, SnapshotError> {
    let mut bytes = format!("{kind} {}\0", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    let name = if sha256 { hex(&sha2::Sha256::digest(&bytes)) } else { hex(&sha1::Sha1::digest(&bytes)) };

    let (fan, rest) = name.split_at(2);
    let directory = objects.join(fan);
    make_private_directory(&directory)?;
    let path = directory.join(rest);
    if path.exists() {
        return Ok(name);
    }
    // git takes files of this name for unfinished and cleans them away.
    let temporary = directory.join(format!("tmp_obj_{}", std::process::id()));
    let written = std::fs::File::create(&temporary)
        .and_then(|mut file| file.write_all(&stored_zlib(&bytes)))
        .and_then(|()| std::fs::rename(&temporary, &path));
    match written {
        Ok(()) => Ok(name),
        Err(error) => {
            let _ = std::fs::remove_file(&temporary);
            Err(SnapshotError::io("write", &path, &error))
        }
    }
}

/// A zlib stream (RFC 1950) that stores the bytes as they are.
fn stored_zlib(bytes: &[u8]) -> Vec<u8> {
    let mut stream = vec![0x78, 0x01];
    let mut blocks = bytes.chunks(MOST_STORED).peekable();
    while let Some(block) = blocks.next() {
        stream.push(u8::from(blocks.peek().is_none()));
        let length = u16::try_from(block.len()).unwrap_or(u16::MAX);
        stream.extend(length.to_le_bytes());
        stream.extend((!length).to_le_bytes());
        stream.extend_from_slice(block);
    }
    stream.extend(adler32(bytes).to_be_bytes());
    stream
}

/// The checksum at the end of a zlib stream (RFC 1950, 8.2).
fn adler32(bytes: &[u8]) -> u32 {
    const MODULUS: u32 = 65_521;
    let (mut low, mut high) = (1, 0);
    for byte in bytes {
        low = (low + u32::from(*byte)) % MODULUS;
        high = (high + low) % MODULUS;
    }
    (high << 16) | low
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn git(directory: &Path, arguments: &[&str]) -> String {
        let output = Command::new("git").arg("-C").arg(directory).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn git_reads_commits_of_any_length() {
        for (format, sha256) in [("sha1", false), ("sha256", true)] {
            let temporary = tempfile::tempdir().unwrap();
            git(temporary.path(), &["init", "-q", &format!("--object-format={format}")]);
            let tree = git(temporary.path(), &["write-tree"]);
            for length in [0, 1, 65_535, 200_000] {
                let message = "m".repeat(length);
                let objects = temporary.path().join(".git/objects");
                let commit = write_commit(&objects, tree.trim_end(), &message, sha256).unwrap();
                let text = git(temporary.path(), &["cat-file", "commit", &commit]);
                assert_eq!(text.split_once("\n\n").unwrap().1, message);
                git(temporary.path(), &["fsck", "--strict"]);
            }
        }
    }

    #[test]
    fn the_checksum_is_the_one_of_the_standard() {
        assert_eq!(adler32(b"Wikipedia"), 0x11E6_0398);
    }
}
