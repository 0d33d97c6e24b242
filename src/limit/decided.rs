//! What an operator has decided about one key of a limit, instead of the file.

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::time::Timestamp;
use crate::value::Map;

/// What an operator has decided about one key of a limit.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Decided {
    /// Other settings than the file's, as [`Limit::with`](crate::Limit::with) takes them.
    Settings(Map),
    /// Everything is allowed, and nothing counts.
    Allow,
    /// Everything is refused.
    Ban,
}

impl Decided {
    /// The kind, as a stable word: `settings`, `allow` or `ban`.
    pub fn kind(&self) -> &'static str {
        match self {
            Decided::Settings(_) => "settings",
            Decided::Allow => "allow",
            Decided::Ban => "ban",
        }
    }
}

/// A decision of an operator, which wins over the file until its end.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Override {
    /// What was decided.
    pub decided: Decided,
    /// The first instant at which the file's limit holds again.
    pub until: Timestamp,
}

/// As `kind`, `settings` (null but for those) and `until` in ms.
impl Serialize for Override {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let settings = match &self.decided {
            Decided::Settings(settings) => Some(settings),
            Decided::Allow | Decided::Ban => None,
        };
        let mut fields = serializer.serialize_struct("Override", 3)?;
        fields.serialize_field("kind", self.decided.kind())?;
        fields.serialize_field("settings", &settings)?;
        fields.serialize_field("until", &self.until)?;
        fields.end()
    }
}
