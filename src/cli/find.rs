//! `tollgate find`: documents of a collection.

use anyhow::Result;
use clap::Args;
use tollgate::{Engine, Error, Map, Outcome, Value};

use super::console::Console;
use super::exit::{Exit, usage};
use super::format;
use super::place::{Need, Place};

/// Finds documents and prints each on a line.
#[derive(Args)]
pub(crate) struct Find {
    /// The collection.
    #[arg(value_name = "COLL")]
    collection: String,
    /// A filter as JSON (`{"plan":"free"}`) or as scripts write it (`#{ plan: "free" }`) [default: everything].
    #[arg(value_name = "FILTER")]
    filter: Option<String>,
    /// Order by these fields; `-field` descends.
    #[arg(long, value_name = "FIELD", env = "TOLLGATE_SORT", value_delimiter = ',', allow_hyphen_values = true)]
    sort: Vec<String>,
    /// Print at most this many.
    #[arg(long, value_name = "N", env = "TOLLGATE_LIMIT")]
    limit: Option<u32>,
    /// Pass over the first so many.
    #[arg(long, value_name = "N", env = "TOLLGATE_SKIP", default_value_t = 0)]
    skip: u32,
}

impl Find {
    pub(crate) fn run(self, place: &Place, console: &mut Console) -> Result<Exit> {
        let engine = place.open(Need::ExistingStore)?;
        let filter = match self.filter.as_deref().map(str::trim) {
            None | Some("") => Map::new(),
            Some(text) => read_filter(&engine, text)?,
        };
        let mut options = Map::from([("skip".to_owned(), Value::from(self.skip))]);
        if !self.sort.is_empty() {
            let fields = self.sort.iter().map(|field| Value::from(field.as_str())).collect();
            options.insert("sort".into(), Value::Array(fields));
        }
        if let Some(limit) = self.limit {
            options.insert("limit".into(), Value::from(limit));
        }
        let documents =
            engine.read::<_, Error>(|transaction| transaction.find_with(&self.collection, &filter, &options))?;
        engine.close()?;
        let none = documents.is_empty();
        for document in documents {
            let document = Value::Map(document);
            if console.json {
                console.record(&document)?;
            } else {
                console.line(format::value(&document))?;
            }
        }
        if none && !console.json {
            console.note("no documents");
        }
        Ok(Exit::Returned)
    }
}

fn read_filter(engine: &Engine, text: &str) -> Result<Map> {
    let value = if text.starts_with('{') {
        Value::from_json(text)
            .map_err(|why| usage(format!("the filter is not JSON: {why}; as scripts write it, it begins with `#{{`")))?
    } else {
        match engine.session().eval(text)? {
            Outcome::Returned(value) => value,
            Outcome::Refused(refusal) => return Err(usage(format!("the filter was {}", format::refusal(&refusal)))),
        }
    };
    match value {
        Value::Map(map) => Ok(map),
        other => Err(usage(format!("the filter is {}: give a map", format::value(&other)))),
    }
}
