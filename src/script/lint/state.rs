//! State: what is known at one point of a function of the takes before it.

use std::collections::BTreeMap;

use rhai::{ImmutableString, Position};

/// The takes that a state remembers: more would say nothing new, and make long functions slow.
const MOST_TAKES: usize = 16;

/// What a value tells of takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fact {
    /// Nothing.
    Plain,
    /// It is a decision.
    Decision,
    /// It is true where a decision allows.
    Allowed,
    /// It is true where a decision refuses.
    Refused,
    /// It depends on a decision in some way.
    Clouded,
}

impl Fact {
    /// What a value tells that is made of two others.
    pub(super) fn with(self, other: Fact) -> Fact {
        if self == Fact::Plain && other == Fact::Plain { Fact::Plain } else { Fact::Clouded }
    }

    /// What a value tells that is one of two others.
    pub(super) fn or(self, other: Fact) -> Fact {
        if self == other { self } else { Fact::Clouded }
    }

    /// What its opposite tells.
    pub(super) fn negated(self) -> Fact {
        match self {
            Fact::Plain => Fact::Plain,
            Fact::Allowed => Fact::Refused,
            Fact::Refused => Fact::Allowed,
            Fact::Decision | Fact::Clouded => Fact::Clouded,
        }
    }
}

/// A take that may have spent tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Take {
    pub(super) line: usize,
    /// The constant that names the limit, where one does.
    pub(super) limit: Option<ImmutableString>,
    /// The block it stands in.
    pub(super) block: usize,
}

/// What is known at one point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    /// Whether control can come here.
    pub(super) reachable: bool,
    /// Whether a limit has refused on the way here: what happens then is an answer to that.
    pub(super) refused: bool,
    /// The takes that may have spent tokens, by where they stand.
    pub(super) spent: BTreeMap<(usize, usize), Take>,
    /// What variables tell; those that tell nothing are left out.
    facts: BTreeMap<ImmutableString, Fact>,
}

impl State {
    /// The beginning of a function.
    pub(super) fn new() -> State {
        State { reachable: true, refused: false, spent: BTreeMap::new(), facts: BTreeMap::new() }
    }

    /// Where control cannot come.
    pub(super) fn nowhere() -> State {
        State { reachable: false, ..State::new() }
    }

    pub(super) fn fact(&self, name: &str) -> Fact {
        self.facts.get(name).copied().unwrap_or(Fact::Plain)
    }

    pub(super) fn set_fact(&mut self, name: &ImmutableString, fact: Fact) {
        match fact {
            Fact::Plain => _ = self.facts.remove(name),
            fact => _ = self.facts.insert(name.clone(), fact),
        }
    }

    /// Notes a take.
    pub(super) fn spend(&mut self, position: Position, limit: Option<ImmutableString>, block: usize) {
        let (line, column) = (position.line().unwrap_or(0), position.position().unwrap_or(0));
        if self.spent.len() < MOST_TAKES {
            self.spent.insert((line, column), Take { line, limit, block });
        }
    }

    /// The state where a limit has refused: the take spent nothing, and what others spent is given up on purpose.
    pub(super) fn after_refusal(mut self) -> State {
        self.spent.clear();
        self.refused = true;
        self
    }

    /// What is known where two ways meet.
    pub(super) fn join(mut self, other: State) -> State {
        if !other.reachable {
            return self;
        }
        if !self.reachable {
            return other;
        }
        self.refused &= other.refused;
        let names: Vec<ImmutableString> = self.facts.keys().chain(other.facts.keys()).cloned().collect();
        for name in names {
            let fact = self.fact(&name).or(other.fact(&name));
            self.set_fact(&name, fact);
        }
        for (place, take) in other.spent {
            if self.spent.len() < MOST_TAKES {
                self.spent.entry(place).or_insert(take);
            }
        }
        self
    }
}
