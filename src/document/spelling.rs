//! Spelling: the known word nearest to a mistyped one.

/// The word of `known` that `word` was probably meant to be.
pub(super) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let reach = 1 + word.chars().count() / 4;
    // A word far longer than every known one is no typing mistake, and is not worth measuring.
    if word.len() > 64 {
        return None;
    }
    let lower = word.to_lowercase();
    known
        .iter()
        .map(|candidate| (distance(&lower, &candidate.to_lowercase()), *candidate))
        .min()
        .filter(|(steps, _)| *steps <= reach)
        .map(|(_, candidate)| candidate)
}

/// `; did you mean …?` or, when nothing is near, the whole list.
pub(super) fn advice(word: &str, known: &[&str]) -> String {
    match nearest(word, known) {
        Some(candidate) => format!("did you mean `{candidate}`?"),
        None => format!("known are {}", known.join(" ")),
    }
}

/// How many letters must be put in, taken out, replaced or swapped with a neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(above[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(before[j - 2] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_found_and_far_ones_not() {
        let known = ["$eq", "$gte", "$exists"];
        assert_eq!(nearest("$exist", &known), Some("$exists"));
        assert_eq!(nearest("$EXISTS", &known), Some("$exists"));
        assert_eq!(nearest("$gt e", &known), Some("$gte"));
        assert_eq!(nearest("$qe", &known), Some("$eq"));
        assert_eq!(nearest("$elemMatch", &known), None);
    }
}
