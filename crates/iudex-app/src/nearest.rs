//! Finds the name that somebody probably meant: keys, commands, slash commands.
//!
//! Never: acting on the guess. It is shown, and the user types it.

/// The candidate nearest to `name`, when one is near enough to be worth showing.
///
/// Case does not count, and `_` is taken for `-`. Near enough is one typing error for every three characters (one at
/// least), or a name that was typed only to its beginning (three characters at least).
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = plain(name);
    let length = name.chars().count();
    if length == 0 {
        return None;
    }
    let allowed = (length / 3).max(1);
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let other = plain(candidate);
        let distance = strsim::damerau_levenshtein(&name, &other);
        // One or two characters may all be replaced within the allowance; such a match means nothing.
        let is_near = distance <= allowed && distance < length;
        let is_beginning = length >= 3 && other.starts_with(&name);
        if (is_near || is_beginning) && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

fn plain(name: &str) -> String {
    name.trim().to_lowercase().replace('_', "-")
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_finds_its_name_and_noise_finds_none() {
        let names = ["run", "undo", "diff", "doctor", "config", "max-retries", "max-steps"];
        for (typed, meant) in [
            ("rnu", Some("run")),
            ("docter", Some("doctor")),
            ("max_retries", Some("max-retries")),
            ("Max-Step", Some("max-steps")),
            ("conf", Some("config")),
            ("max-", Some("max-steps")),
            ("zebra", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(typed, names), meant, "{typed:?}");
        }
    }
}
