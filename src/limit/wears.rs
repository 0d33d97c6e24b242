//! Wearing off: what every kind of limit answers about the tokens that were spent of one bucket.

/// What every kind answers about what was spent. Instants and spans are in ms.
pub(super) trait Wears {
    /// What was spent, as this kind counts it.
    type Spent;

    /// What is left at `now` of what was left at `at`.
    fn wear(&self, spent: Self::Spent, at: i64, now: i64) -> Option<Self::Spent>;

    /// Spends `tokens`, from 1 up, at `now`, on top of what is left at `now`.
    fn spend(&self, spent: Option<Self::Spent>, now: i64, tokens: i64) -> Option<Self::Spent>;

    /// Gives back `tokens` at `at`, never beyond full.
    fn give(&self, spent: Self::Spent, at: i64, tokens: i64) -> Option<Self::Spent>;

    /// Tokens spent and left at `at`, rounded up.
    fn used(&self, spent: &Self::Spent, at: i64) -> i64;

    /// When at most `allowance` tokens are left of what is spent at `at`; not after `at` when they already are.
    fn clears_at(&self, spent: &Self::Spent, at: i64, allowance: i64) -> i64;

    /// When nothing is left to remember.
    fn over_at(&self, spent: &Self::Spent, at: i64) -> i64 {
        self.clears_at(spent, at, 0)
    }

    /// Spending recorded at `at` under other settings, as these count it.
    fn adapt(&self, spent: Self::Spent, _at: i64, _old_capacity: i64, _capacity: i64) -> Option<Self::Spent> {
        Some(spent)
    }
}
