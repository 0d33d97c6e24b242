//! Pages to read beside the reference. There is no code in them; what they state is tested here.

#[doc = include_str!("limits.md")]
pub mod limits {}

#[doc = include_str!("jobs.md")]
pub mod jobs {}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use crate::bucket::take;
    use crate::engine::Engine;
    use crate::limit::{Change, Cost, Key, Kind, Limit, Mode, Standing, State, Verdict};
    use crate::store::overlay::{Overlay, hash};
    use crate::store::{Direction, MemoryStore, Range};
    use crate::time::Timestamp;
    use crate::transaction::Transaction;

    const PAGE: &str = include_str!("limits.md");

    /// 2026-01-02T00:00 in Berlin: an edge of the days there, and of the minutes of the epoch.
    const EDGE: i64 = 1_767_308_400_000;

    /// The rows of the page's table whose first cell is a declaration.
    fn declared() -> Vec<Vec<&'static str>> {
        PAGE.lines()
            .filter(|line| line.starts_with("| `") && line.contains("(\"api\""))
            .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
            .collect()
    }

    fn limit(declaration: &str) -> Limit {
        let source = format!("const L = {}; fn api() {{ L.take() }}", declaration.trim_matches('`'));
        let engine = Engine::builder().memory().source("guide.rhai", &source).open().unwrap();
        engine.limit("api").unwrap()
    }

    /// A bucket, kept as it is stored.
    struct Bucket {
        limit: Limit,
        state: Option<State>,
    }

    impl Bucket {
        fn of(limit: &Limit) -> Bucket {
            Bucket { limit: limit.clone(), state: None }
        }

        fn take(&mut self, now: i64) -> bool {
            let key = Key::from("k");
            let mut standing = Standing::new(&self.limit, &key, self.state.clone(), Timestamp::from_millis(now));
            if standing.verdict(1, Mode::Take) != Verdict::Fits {
                return false;
            }
            standing.spend(1, true);
            self.state = match standing.change() {
                Change::Put(state) => Some(state),
                Change::Forget => None,
            };
            true
        }

        /// Takes all that is there.
        fn drain(&mut self, now: i64) -> i64 {
            (0..).take_while(|_| self.take(now)).count() as i64
        }

        fn bytes(&self) -> usize {
            let mut bytes = crate::element::Encoded::new();
            self.state.as_ref().unwrap().encode(&mut bytes);
            bytes.len()
        }
    }

    /// The bytes after one take, and after as many as a hundred while they fit, from the edge on, 300 ms apart.
    fn sizes(limit: &Limit) -> [usize; 2] {
        let mut bucket = Bucket::of(limit);
        assert!(bucket.take(EDGE));
        let first = bucket.bytes();
        for n in 1..100 {
            bucket.take(EDGE + n * 300);
        }
        [first, bucket.bytes()]
    }

    #[test]
    fn each_kind_is_there_in_its_own_words_and_with_its_bytes() {
        let rows = declared();
        let mut wrong = Vec::new();
        for row in &rows {
            let limit = limit(row[0]);
            let [one, hundred] = sizes(&limit).map(|bytes| bytes.to_string());
            let truth = [row[0], &limit.describe(), &one, &hundred];
            if row[..] != truth {
                wrong.push(format!("| {} |", truth.join(" | ")));
            }
        }
        assert!(wrong.is_empty(), "the page should say\n{}", wrong.join("\n"));
        for kind in Kind::ALL {
            assert!(rows.iter().any(|row| row[0].contains(kind.name())), "the page leaves out {kind}");
        }
    }

    #[test]
    fn beside_its_state_a_bucket_takes_what_the_page_says() {
        let now = Timestamp::from_millis(EDGE);
        for row in declared() {
            let limit = limit(row[0]);
            for key in ["k", "a-longer-key"] {
                let mut tx = Transaction::over(Arc::new(MemoryStore::new()), now);
                assert!(take(&mut tx, &limit, &Key::from(key), Cost::ONE).unwrap().allowed);
                let overlay = Overlay::default();
                let rows = tx.scan(&Range::prefix(&[]), Direction::Ascending, 10).unwrap();
                for (key, value) in &rows {
                    overlay.put(hash(key), key.clone(), Some(value.clone()));
                }
                let state: usize = row[2].parse().unwrap();
                let beside = 2 * (limit.name().len() + key.len()) + 39;
                let stored: usize = rows.iter().map(|(key, value)| key.len() + value.len()).sum();
                assert_eq!((stored, overlay.bytes()), (beside + state, beside + state + 256), "{}", row[0]);
            }
        }
        assert!(PAGE.contains("2*n* + 2*k* + 39 bytes") && PAGE.contains("256 bytes more"));
    }

    /// One take may open a window; then all that is there just before the edge, and all that comes for a minute.
    fn attack(limit: &Limit, opens: bool) -> i64 {
        let mut bucket = Bucket::of(limit);
        if opens {
            assert!(bucket.take(EDGE - 60_000));
        }
        let before = bucket.drain(EDGE - 1);
        let after: i64 = (0..59_999).map(|ms| bucket.drain(EDGE + ms)).sum();
        before + after
    }

    #[test]
    fn the_most_in_a_period_is_what_an_attack_gets() {
        for row in declared() {
            let limit = limit(row[0]);
            let most: i64 = row[1].split("at most ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
            if limit.kind() == Kind::Concurrency {
                assert_eq!(Bucket::of(&limit).drain(EDGE), most);
                continue;
            }
            let got = attack(&limit, false).max(attack(&limit, true));
            assert_eq!(got, most, "{}", row[0]);
        }
    }

    #[test]
    fn every_model_is_shipped_and_named_on_the_page_and_in_the_readme() {
        let readme = fs::read_to_string("README.md").unwrap();
        for entry in fs::read_dir("scripts").unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let Some(name) = name.strip_suffix(".rhai").filter(|name| !name.ends_with("_test")) else { continue };
            assert!(readme.contains(&format!("`{name}`")), "the README leaves out {name}");
        }
        for row in PAGE.lines().filter(|line| line.starts_with('|') && !line.contains("(\"api\"")) {
            let models = row.trim_matches('|').rsplit('|').next().unwrap();
            for model in models.split('`').skip(1).step_by(2) {
                assert!(fs::exists(format!("scripts/{model}.rhai")).unwrap(), "there is no {model}");
            }
        }
    }
}
