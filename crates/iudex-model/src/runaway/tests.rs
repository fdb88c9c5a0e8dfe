use std::fmt::Write as _;

use super::*;

fn honest(name: &str, text: &str) {
    assert_eq!(runaway_in(text), None, "{name} ({} bytes) is honest", text.len());
}

#[test]
fn newlines_without_end_are_stopped() {
    let text = format!("```json\n{{\"tool\": \"read\"}}\n```{}", "\n".repeat(400));
    assert_eq!(runaway_in(&text), Some(Runaway::WhiteSpace));
}

#[test]
fn escaped_newlines_in_a_json_string_without_end_are_stopped() {
    let text = format!("{{\"tool\":\"write\",\"content\":\"x{}", "\\n".repeat(400));
    assert_eq!(runaway_in(&text), Some(Runaway::WhiteSpace));
}

#[test]
fn white_space_that_comes_one_character_at_a_time_is_stopped() {
    let mut detector = RunawayDetector::default();
    let stopped_at = (1..2_000).find(|_| detector.push(" ").is_some());
    assert_eq!(stopped_at, Some(301));
}

#[test]
fn an_escape_split_between_two_pieces_still_counts() {
    let mut detector = RunawayDetector::default();
    let stopped = (0..400).any(|_| detector.push("\\").or_else(|| detector.push("n")).is_some());
    assert!(stopped);
}

#[test]
fn a_sentence_without_end_is_stopped_early() {
    let text = "I will now read the file and check it.\n".repeat(100);
    assert_eq!(runaway_in(&text), Some(Runaway::Repetition));
    honest("the same sentence ten times", &"I will now read the file and check it.\n".repeat(10));
}

#[test]
fn a_long_paragraph_without_end_is_stopped() {
    let mut paragraph = String::new();
    for number in ["one", "two", "three", "four", "five", "six", "seven", "eight"] {
        let _ = write!(paragraph, "The step called {number} is needed because the test says so and nothing else. ");
    }
    assert!(paragraph.len() > 500);
    assert_eq!(runaway_in(&paragraph.repeat(15)), Some(Runaway::Repetition));
}

#[test]
fn a_call_without_end_is_stopped() {
    let text = "{\"name\": \"read\", \"arguments\": {\"path\": \"a.txt\"}}\n".repeat(200);
    assert_eq!(runaway_in(&text), Some(Runaway::Repetition));
}

#[test]
fn repetition_after_an_honest_start_and_in_other_scripts_is_stopped() {
    let text = format!("fn main() {{}}\n{}", "もう一度 ファイル を 読みます。".repeat(300));
    assert_eq!(runaway_in(&text), Some(Runaway::Repetition));
}

#[test]
fn repetitive_csv_is_honest() {
    let mut text = String::from("id,name,city,state\n");
    for id in 0..600 {
        let _ = writeln!(text, "{id},alice,london,active");
    }
    honest("CSV with an id", &text);
    honest("CSV with the same line", &"alice,london,active,none\n".repeat(200));
}

#[test]
fn tables_of_zeros_are_honest() {
    honest("an array of zeros", &format!("[{}]", "0, ".repeat(1_500)));
    honest("a matrix of zeros", &"0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n".repeat(128));
    honest("a table of bytes", &"0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,\n".repeat(64));
}

#[test]
fn indented_code_and_rulers_are_honest() {
    let deep = format!("{}return x;\n", " ".repeat(120));
    honest("deeply indented code", &deep.repeat(30));
    honest("a ruler", &format!("{}\nTitle\n{}\n", "=".repeat(400), "-".repeat(400)));
    let mut text = String::new();
    for number in 0..300 {
        let _ = writeln!(text, "        if value == {number} {{\n            return \"number {number}\";\n        }}");
    }
    honest("a long chain of branches", &text);
}

#[test]
fn repeated_markup_is_honest() {
    let card = "<div class=\"card\"><h2>Title</h2><p>Some text that stands for another text</p></div>\n";
    honest("twenty equal cards", &card.repeat(20));
}

#[test]
fn minified_json_is_honest() {
    let mut text = String::from("[");
    for id in 0..500 {
        let _ = write!(text, "{{\"id\":{id},\"tags\":[],\"name\":\"item\",\"parent\":null}},");
    }
    honest("minified JSON", &text);
}

#[test]
fn blank_lines_between_paragraphs_are_honest() {
    honest("blank lines", &"line\n\n\n\n    \n".repeat(50).replace("line", "a line with other words"));
}

#[test]
fn the_memory_of_the_detector_is_bounded() {
    let mut detector = RunawayDetector::default();
    for number in 0..40_000 {
        assert_eq!(detector.push(&format!("row {number}\n")), None);
    }
    assert!(detector.tail.len() <= 2 * KEPT + LOOK_EVERY * 2);
}

/// Whether a whole text runs away, for answers that came in one piece.
fn runaway_in(text: &str) -> Option<Runaway> {
    // In pieces, as a stream would bring it: what the tail keeps is bounded, and the middle counts too.
    let mut detector = RunawayDetector::default();
    let mut rest = text;
    while !rest.is_empty() {
        let mut end = LOOK_EVERY.min(rest.len());
        while !rest.is_char_boundary(end) {
            end += 1;
        }
        if let Some(runaway) = detector.push(&rest[..end]) {
            return Some(runaway);
        }
        rest = &rest[end..];
    }
    None
}
