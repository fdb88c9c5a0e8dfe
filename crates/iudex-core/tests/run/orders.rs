//! Every order of rulings up to length four, compared with a model of a few lines that was written apart from the loop.

use iudex_core::{Move, Outcome};
use iudex_testkit::scripted::Answer;

use crate::harness::{Scene, busy};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Accepted,
    Same,
    New,
    Void,
}

const WORDS: [Word; 4] = [Word::Accepted, Word::Same, Word::New, Word::Void];
const FAILURES: [&str; 9] = ["f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8"];

/// What the rules say about a sequence: the outcome's word, questions asked, and the moves.
#[derive(Debug, PartialEq, Eq)]
struct Expected {
    word: &'static str,
    asked: usize,
    moves: Vec<Move>,
}

/// The rules: accepted ends it; three voids in a row end it; the fourth rework ends it; the same failure for the second
/// time is answered with a fresh conversation, from the third time on with the base.
fn expected(words: &[Word]) -> Expected {
    let (mut voids, mut same) = (0, 0);
    let mut moves = Vec::new();
    for (index, word) in words.iter().enumerate() {
        let asked = index + 1;
        match word {
            Word::Accepted => return Expected { word: "done (checked in place only)", asked, moves },
            Word::Void => {
                voids += 1;
                if voids == 3 {
                    return Expected { word: "needs you", asked, moves };
                }
            }
            Word::Same | Word::New => {
                voids = 0;
                if moves.len() == 3 {
                    return Expected { word: "validation failed", asked, moves };
                }
                same = if *word == Word::Same { same + 1 } else { 1 };
                moves.push(match same {
                    1 => Move::Continue,
                    2 => Move::Fresh,
                    _ => Move::Resample,
                });
            }
        }
    }
    panic!("the sequence does not end: {words:?}");
}

fn answers(words: &[Word]) -> Vec<Answer> {
    let mut failure = 0;
    let answer = |word: &Word| match word {
        Word::Accepted => Answer::Accept,
        Word::Same => Answer::Rework(FAILURES[failure]),
        Word::New => {
            failure += 1;
            Answer::Rework(FAILURES[failure])
        }
        Word::Void => Answer::Void,
    };
    words.iter().map(answer).collect()
}

/// Every sequence of `length` words.
fn sequences(length: usize) -> Vec<Vec<Word>> {
    (0..length).fold(vec![Vec::new()], |shorter, _| {
        let longer = shorter.iter().flat_map(|words| WORDS.map(|word| [words.as_slice(), &[word]].concat()));
        longer.collect()
    })
}

#[tokio::test(start_paused = true)]
async fn every_order_of_rulings_ends_as_the_rules_say() {
    let mut played_sequences = 0;
    for length in 0..=4 {
        for start in sequences(length) {
            // Whatever comes after the four: at last a yes, or always a no, or always nothing.
            for rest in [Word::Accepted, Word::New, Word::Same, Word::Void] {
                let words = [start.as_slice(), &[rest; 4]].concat();
                let expected = expected(&words);
                let played = Scene::new(busy(8)).check(answers(&words)).play().await;
                let found = Expected { word: played.word(), asked: played.asked().len(), moves: played.moves() };
                assert_eq!(found, expected, "{words:?}");

                let last = words[expected.asked - 1];
                let done = matches!(played.outcome(), Outcome::Done { .. });
                assert_eq!(done, last == Word::Accepted, "{words:?} ends with {last:?}");
                played_sequences += 1;
            }
        }
    }
    assert_eq!(played_sequences, (1 + 4 + 16 + 64 + 256) * 4);
}
