//! Python tracebacks without what the reader cannot change.
//!
//! A failing test of Python shows a dozen frames of the standard library before the one that matters; for a small model
//! they are half a minute of reading. Never: a line that is not part of a frame left out, and nothing left out unsaid.

use std::path::Path;

/// The text with runs of frames of files outside of `directory` replaced by one line that counts them, and with paths in
/// `directory` relative to it in frames. The last frame of a traceback stays, whatever its file.
pub fn without_foreign_frames(text: &str, directory: &Path) -> String {
    let prefix = format!("{}/", directory.display());
    let lines: Vec<&str> = text.split('\n').collect();
    let mut out: Vec<String> = Vec::with_capacity(lines.len());
    let (mut at, mut skipped) = (0, 0);
    while at < lines.len() {
        let Some(file) = file_of_frame(lines[at]) else {
            say_skipped(&mut out, &mut skipped);
            out.push(lines[at].to_owned());
            at += 1;
            continue;
        };
        let end = at + 1 + lines[at + 1..].iter().take_while(|line| line.starts_with("    ")).count();
        let is_last =
            lines.get(end).is_none_or(|line| file_of_frame(line).is_none() && !line.starts_with("  [Previous"));
        let is_foreign = file.starts_with('<') || (file.starts_with('/') && !file.starts_with(&prefix));
        if is_foreign && !is_last {
            skipped += 1;
        } else {
            say_skipped(&mut out, &mut skipped);
            out.push(lines[at].replacen(&prefix, "", 1));
            out.extend(lines[at + 1..end].iter().map(|line| (*line).to_owned()));
        }
        at = end;
    }
    say_skipped(&mut out, &mut skipped);
    out.join("\n")
}

fn say_skipped(out: &mut Vec<String>, skipped: &mut u32) {
    let frames = if *skipped == 1 { "frame" } else { "frames" };
    if *skipped > 0 {
        out.push(format!("  [{skipped} {frames} outside of the project]"));
    }
    *skipped = 0;
}

/// The file of a line as it stands in a traceback, indented by two spaces.
fn file_of_frame(line: &str) -> Option<&str> {
    python_place(line.strip_prefix("  ")?)
}

/// The file of `File "x.py", line 3, in name`.
pub fn python_place(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("File \"")?;
    let (file, after) = rest.split_once("\", line ")?;
    after.starts_with(|c: char| c.is_ascii_digit()).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_others_are_counted_and_all_else_stays() {
        let text = "ERROR: test_x\nTraceback (most recent call last):\n  File \"<frozen runpy>\", line 198, in _run\n  File \
                    \"/usr/lib/python3/unittest/loader.py\", line 162, in load\n    module = __import__(name)\n             \
                    ^^^^^^\n  File \"/work/p/test_x.py\", line 3, in <module>\n    from x import f\n  File \
                    \"/usr/lib/python3/json.py\", line 1, in loads\n    raise it\nValueError: bad\nend";
        let wanted = "ERROR: test_x\nTraceback (most recent call last):\n  [2 frames outside of the project]\n  File \
                      \"test_x.py\", line 3, in <module>\n    from x import f\n  File \"/usr/lib/python3/json.py\", line 1, in \
                      loads\n    raise it\nValueError: bad\nend";
        assert_eq!(without_foreign_frames(text, Path::new("/work/p")), wanted);
    }

    #[test]
    fn other_text_stays_byte_for_byte() {
        for text in ["", "\n", "  File \"x\" is missing\n    indented\n", "File \"/a/b.py\", line 3\n", "a\r\nb\r\n"] {
            assert_eq!(without_foreign_frames(text, Path::new("/work/p")), text);
        }
    }
}
