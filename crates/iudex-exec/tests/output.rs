//! Output in any amount.

#![allow(clippy::unwrap_used, reason = "a test that cannot prepare itself fails")]

mod common;

use std::os::unix::fs::PermissionsExt as _;

use common::{Place, assert_passed, backends, run};
use iudex_exec::{Backend, OutputSpec};

/// Of `yes 0123456789abcde | head -c LENGTH`.
fn expected(length: usize) -> Vec<u8> {
    b"0123456789abcde\n".repeat(length / 16)
}

#[test]
fn a_flood_passes_with_head_tail_digest_and_file() {
    const TOTAL: usize = 80 << 20;
    let place = Place::new();
    let file = place.root().join("output");
    // `head` breaks the pipe, which alone would be a failure.
    let mut spec = place.spec(&Backend::None, &format!("yes 0123456789abcde | head -c {TOTAL}; exit 0"));
    spec.output = OutputSpec { head: 1_000, tail: 2_000, file: Some(file.clone()) };
    let finished = run(spec).unwrap();
    assert_passed(&finished, "flood");
    let output = finished.output;
    let whole = expected(TOTAL);
    assert_eq!(output.total, TOTAL as u64);
    assert_eq!(output.omitted, TOTAL as u64 - 3_000);
    assert_eq!(output.head, whole[..1_000]);
    assert_eq!(output.tail, whole[TOTAL - 2_000..]);
    // yes 0123456789abcde | head -c 83886080 | sha256sum
    assert_eq!(output.sha256, "84cc3b372eaa55062249b04f8509d3bf5f01423997ae2057903488521b49c2d9");
    assert_eq!(output.file.as_deref(), Some(file.as_path()));
    let kept = std::fs::read(&file).unwrap();
    let (head, tail) = (8 << 20, 56 << 20);
    let marker = format!("\n[... {} bytes left out ...]\n", TOTAL - head - tail);
    assert_eq!(kept.len(), head + marker.len() + tail);
    assert!(kept[..head] == whole[..head], "the head of the file");
    assert_eq!(&kept[head..head + marker.len()], marker.as_bytes());
    assert!(kept[head + marker.len()..] == whole[TOTAL - tail..], "the tail of the file");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn the_last_words_before_the_end_are_never_lost() {
    for backend in backends() {
        let place = Place::new();
        for _ in 0..5 {
            let finished = place.run(&backend, "head -c 50000 /dev/zero | tr '\\0' x; echo; echo last words; exit 1");
            assert!(finished.output.text().ends_with("\nlast words\n"), "{backend:?}");
            assert_eq!(finished.output.total, 50_012, "{backend:?}");
        }
    }
}

#[test]
fn a_file_that_cannot_be_written_fails_nothing_and_is_told() {
    let place = Place::new();
    for (file, reason) in [("/dev/full", "No space left on device"), ("/no/such/directory/file", "No such file")] {
        let mut spec = place.spec(&Backend::None, "echo text");
        spec.output.file = Some(file.into());
        let finished = run(spec).unwrap();
        assert_passed(&finished, file);
        assert_eq!(finished.output.text(), "text\n");
        assert_eq!(finished.output.file, None);
        let error = finished.output.file_error.unwrap();
        assert!(error.contains(reason), "{error}");
    }
    assert!(std::path::Path::new("/dev/full").exists(), "a device is not removed");
}

#[test]
fn bytes_that_are_no_text_are_kept() {
    let finished = Place::new().run(&Backend::None, "printf '\\377\\000\\303\\274'");
    assert_eq!(finished.output.head, b"\xff\0\xc3\xbc");
}

#[test]
fn lines_are_shown_while_it_runs() {
    for backend in backends() {
        let place = Place::new();
        let mut lines = Vec::new();
        let spec = place.spec(&backend, "echo one; printf '\\033[1mtwo\\033[0m\\n'; printf three");
        let shown = &mut |line: &str| lines.push(line.to_owned());
        common::block_on(iudex_exec::run(spec, shown)).unwrap();
        assert_eq!(lines, ["one", "two", "three"], "{backend:?}");
    }
}

#[test]
fn the_memory_does_not_grow_with_the_output() {
    let place = Place::new();
    let own = std::env::current_exe().unwrap();
    let helper = own.parent().unwrap().parent().unwrap().join("examples/supervisor");
    let peak = |bytes: usize| -> u64 {
        let [work, state] = [&place.work, &place.state].map(|path| path.to_str().unwrap());
        let script = format!("head -c {bytes} /dev/zero | tr '\\0' x");
        let output =
            std::process::Command::new(&helper).args(["none", work, state, "60", &script]).output().unwrap().stdout;
        let text = String::from_utf8_lossy(&output).into_owned();
        assert!(text.contains(&format!("bytes: {bytes}\n")), "{}", &text[text.len().saturating_sub(500)..]);
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    };
    let (little, much) = (peak(1 << 10), peak(128 << 20));
    assert!(much < little + 4_096, "{little} KiB for 1 KiB of output, {much} KiB for 128 MiB");
}
