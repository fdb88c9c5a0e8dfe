//! Counts the tokens of a text without a vocabulary, for what must fit.
//!
//! Never: fewer than a common tokenizer takes.

/// The number of tokens of a text, estimated from above as far as that is possible without a vocabulary: common
/// tokenizers take at most six letters of a word, three digits, and one sign at a time more often than not. For what must
/// not outgrow its room; an estimate of the middle is with the models.
pub fn most_tokens(text: &str) -> u64 {
    let mut total = 0;
    let mut chars = text.chars().peekable();
    while let Some(first) = chars.next() {
        let mut length = 1;
        let mut previous = first;
        while let Some(next) = chars.next_if(|next| goes_on(previous, *next)) {
            length += 1;
            previous = next;
        }
        total += match first {
            c if c.is_ascii_alphabetic() => usize::div_ceil(length, 5),
            c if c.is_ascii_digit() => usize::div_ceil(length, 3),
            // One space belongs to the word after it, but never to a number.
            ' ' => usize::from(length > 1 || chars.peek().is_some_and(char::is_ascii_digit)),
            c if c.is_ascii() => usize::div_ceil(length, 8),
            c if c.is_alphanumeric() => length,
            _ => usize::div_ceil(length, 2) * 3,
        };
    }
    (total + total / 10) as u64
}

/// True when two characters may belong to one token.
fn goes_on(previous: char, next: char) -> bool {
    if previous.is_ascii_alphabetic() {
        return next.is_ascii_lowercase() || (previous.is_ascii_uppercase() && next.is_ascii_uppercase());
    }
    if previous.is_ascii_digit() {
        return next.is_ascii_digit();
    }
    if previous.is_alphanumeric() { next.is_alphanumeric() && !next.is_ascii() } else { next == previous }
}
