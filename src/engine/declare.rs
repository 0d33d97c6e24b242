//! Declarations: what a program says of collections made known to the store, all or none, and what they need built.

use crate::document::build::{self, Progress};
use crate::document::catalogue::{self, Work};
use crate::document::collection::CollectionSpec;
use crate::document::error::DocumentError;
use crate::error::{Diagnostic, Error, Severity};
use crate::script::Program;

use super::Engine;

impl Engine {
    /// Makes the store know the collections that a program declares, and builds what they need.
    ///
    /// Errors: [`Error::Compile`], when the documents there are do not allow an index or a ttl; what was declared on
    /// the way is taken back.
    pub(crate) fn declare(&self, program: &Program) -> Result<(), Error> {
        // What no store could take is found before any of it is declared.
        for declared in program.collections() {
            self.repeat(true, |tx| catalogue::foresee(tx, &declared.spec))?;
        }
        let mut before: Vec<(String, Option<CollectionSpec>)> = Vec::new();
        for declared in program.collections() {
            let spec = &declared.spec;
            let collection = &spec.name;
            // What an earlier process began and did not finish goes on too.
            let (was, pending) = self.write_rows(true, |tx| {
                let was = catalogue::stored(tx, collection)?.map(|stored| stored.into_spec(collection));
                catalogue::declare(tx, spec)?;
                Ok((was, catalogue::pending(tx, collection)?))
            })?;
            before.push((collection.clone(), was));
            for work in pending {
                if let Some(why) = self.finish(collection, &work)? {
                    let refused = Diagnostic {
                        code: why.code,
                        severity: Severity::Error,
                        message: why.message,
                        position: Some(declared.position.clone()),
                        source_line: program.line(&declared.position.file, declared.position.line).map(str::to_owned),
                        hint: None,
                    };
                    self.take_back(before)?;
                    return Err(Error::Compile(vec![refused]));
                }
            }
        }
        Ok(())
    }

    /// Does a work to its end. Says why, when the documents there are do not allow it.
    fn finish(&self, collection: &str, work: &Work) -> Result<Option<crate::document::error::DataError>, Error> {
        let mut refused = None;
        loop {
            match self.write_rows(false, |tx| build::build_step(tx, collection, work, build::MOST_ROWS))? {
                Progress::Working { done } => {
                    (self.inner.on_progress)(&format!("building {collection}"), done, 0);
                }
                Progress::Ready | Progress::Dropped => return Ok(refused),
                Progress::Refused(why) => refused = Some(why),
            }
        }
    }

    /// Makes the store know of collections what it knew before.
    fn take_back(&self, before: Vec<(String, Option<CollectionSpec>)>) -> Result<(), Error> {
        for (collection, was) in before {
            let spec = was.clone().unwrap_or_else(|| CollectionSpec::new(&*collection));
            let pending = self.write_rows(true, |tx| catalogue::restore(tx, &spec))?;
            for work in pending {
                // What was refused before as well stays refused; it is not what this is about.
                self.finish(&collection, &work)?;
            }
            if was.is_none() {
                self.write_rows(true, |tx| -> Result<_, DocumentError> { catalogue::forget(tx, &collection) })?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{Map, Value};

    #[test]
    fn what_a_refused_deploy_declared_on_its_way_is_taken_back() {
        let known = r#"collection("users").index("plan").ttl("until");"#;
        let engine = Engine::builder().memory().source("a.rhai", known).open().unwrap();
        for plan in ["free", "free", "paid"] {
            let user = Map::from([("plan".to_owned(), Value::from(plan))]);
            engine.transaction(|tx| tx.insert("users", user.clone())).unwrap();
            engine.transaction(|tx| tx.insert("visits", user.clone())).unwrap();
        }
        let rows = || {
            engine.repeat(true, |tx| {
                let names = catalogue::collections(tx)?;
                names.iter().map(|name| catalogue::stored(tx, name)).collect::<Result<Vec<_>, _>>()
            })
        };
        let before = rows().unwrap().0;
        for refused in [
            r#"collection("users").index("name").unique("plan").ttl("gone", "1h").buffered();"#,
            r#"collection("a").index("x"); collection("users").unique("name"); collection("visits").unique("plan");"#,
            r#"collection("users").index("later").buffered(); collection("visits").index("x").ttl("plan");"#,
        ] {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("a.rhai"), refused).unwrap();
            assert!(matches!(engine.deploy(folder.path()), Err(Error::Compile(_))), "{refused}");
            assert_eq!(rows().unwrap().0, before, "{refused}");
            assert_eq!(engine.releases().unwrap(), []);
            assert_eq!(engine.doctor().unwrap(), Vec::<String>::new());
        }
    }
}
