//! Spelling: the known name nearest to one that is not known.

/// The candidate within a third of the name's length in slips of typing, the nearest first, then in order.
pub(crate) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A name longer than this is no typing slip, and comparing it would cost time with its square.
    const LONGEST: usize = 64;
    let length = name.chars().count();
    if length > LONGEST {
        return None;
    }
    let most = (length / 3).max(1);
    let lower = name.to_lowercase();
    candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= LONGEST * 2)
        .map(|candidate| (strsim::osa_distance(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(slips, candidate)| *slips <= most && *slips < candidate.chars().count())
        .min()
        .map(|(_, candidate)| candidate)
}

/// `did you mean …?` or, when nothing is near, the whole list.
pub(crate) fn advice(name: &str, known: &[&str]) -> String {
    match nearest(name, known.iter().copied()) {
        Some(candidate) => format!("did you mean `{candidate}`?"),
        None => format!("known are {}", known.join(" ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_understood_and_strangers_are_not() {
        let names = ["find_one", "find", "login_attempt", "insert"];
        assert_eq!(nearest("fnid_one", names), Some("find_one"));
        assert_eq!(nearest("Login_Atempt", names), Some("login_attempt"));
        assert_eq!(nearest("payment", names), None);
        assert_eq!(nearest("x", names), None);
        let operators = ["$eq", "$gte", "$exists"];
        assert_eq!(nearest("$EXIST", operators), Some("$exists"));
        assert_eq!(nearest("$qe", operators), Some("$eq"));
        assert_eq!(nearest("$elemMatch", operators), None);
        assert_eq!(advice("$elemMatch", &operators), "known are $eq $gte $exists");
    }
}
