// Draft of the engine's public API, for the layer above. Bodies come with the engine.
pub struct Engine; // Clone, Send, Sync
impl Engine {
    pub fn builder() -> EngineBuilder;
    pub fn call<T: DeserializeOwned>(&self, procedure: &str, args: &(impl Serialize + ?Sized)) -> Result<Outcome<T>, Error>;
    pub fn call_with<T: DeserializeOwned>(&self, procedure: &str, args: &(impl Serialize + ?Sized), options: &CallOptions) -> Result<Outcome<T>, Error>;
    pub fn call_values(&self, procedure: &str, args: Arguments, options: &CallOptions) -> Result<Outcome<Value>, Error>; // Arguments::{Positional(Vec<Value>), Named(Map)}
    pub fn transaction<T, E: From<Error>>(&self, run: impl FnMut(&mut Transaction) -> Result<T, E>) -> Result<T, E>;
    pub fn read<T, E: From<Error>>(&self, run: impl FnMut(&mut Transaction) -> Result<T, E>) -> Result<T, E>; // read-only
    pub fn now(&self) -> Timestamp;
    pub fn reload(&self) -> Result<(), Error>;                      // from the folder or the stored release
    pub fn load_dir(&self, dir: impl AsRef<Path>) -> Result<(), Error>;
    pub fn load(&self, name: &str, source: &str) -> Result<(), Error>;
    pub fn deploy(&self, dir: impl AsRef<Path>) -> Result<Release, Error>;   // Release { number: u64, at: Timestamp, hash: String, files: Vec<ReleaseFile{path, text}>, rollback_of: Option<u64> }
    pub fn releases(&self) -> Result<Vec<Release>, Error>;
    pub fn rollback(&self, number: Option<u64>) -> Result<Release, Error>;   // to `number`, or the one before the current
    pub fn procedures(&self) -> Vec<ProcedureInfo>;   // { name, parameters: Vec<ParameterInfo{name, kind: Option<String>, optional: bool}>, signature: String, doc: String, position: Position }
    pub fn limits(&self) -> Vec<Limit>;               // declared ones; Limit::name(), describe()
    pub fn collections(&self) -> Vec<String>;         // declared and stored ones
    pub fn warnings(&self) -> Vec<Diagnostic>;
    pub fn buckets(&self, limit: &str, after: Option<&Key>, max: usize) -> Result<Vec<BucketInfo>, Error>; // { key: Key, decision: Decision (a peek) , blocked_until: Option<Timestamp>}
    pub fn sweep(&self) -> Result<SweepSummary, Error>;      // { removed: u64, moved: u64 }
    pub fn doctor(&self) -> Result<Vec<String>, Error>;      // empty = healthy
    pub fn compact(&self) -> Result<(), Error>;
    pub fn flush(&self) -> Result<(), Error>;
    pub fn size_on_disk(&self) -> Result<u64, Error>;
    pub fn session(&self) -> Session;
    pub fn close(self) -> Result<(), Error>;
}
pub struct EngineBuilder;
impl EngineBuilder {
    pub fn path(self, path: impl AsRef<Path>) -> Self;  pub fn memory(self) -> Self;  pub fn store(self, store: impl Store) -> Self;
    pub fn scripts(self, dir: impl AsRef<Path>) -> Self;  pub fn source(self, name: &str, text: &str) -> Self;
    pub fn clock(self, clock: impl Clock) -> Self;  pub fn durability(self, d: Durability) -> Self;  pub fn budget(self, b: Budget) -> Self;
    pub fn register_fn(self, name, arity: usize, f: impl Fn(&[Value]) -> Result<Value, String> + Send + Sync + 'static) -> Self;
    pub fn flush_interval(self, Duration) -> Self; pub fn flush_timeout(self, Duration) -> Self; pub fn sweep_interval(self, Option<Duration>) -> Self;
    pub fn seed(self, seed: u64) -> Self; pub fn read_only(self) -> Self;
    pub fn on_log(self, f: impl Fn(&LogLine) + Send + Sync + 'static) -> Self;   // LogLine { level: LogLevel, message, data, procedure }; default: tracing events
    pub fn on_progress(self, f: impl Fn(&str what, u64 done, u64 total)) -> Self; // long work such as index builds at load
    pub fn open(self) -> Result<Engine, Error>;
}
pub struct CallOptions; // CallOptions::new().caller(Map).durability(Durability).deadline(Duration).budget(Budget).at(Timestamp)
pub enum Durability { Auto, Immediate, Buffered }
/// A REPL's state: variables that last, an open transaction, a caller.
pub struct Session;
impl Session {
    pub fn eval(&mut self, input: &str) -> Result<Outcome<Value>, Error>;    // one input = one call, or one step of the open transaction
    pub fn is_incomplete(&self, input: &str) -> bool;
    pub fn begin(&mut self) -> Result<(), Error>; pub fn commit(&mut self) -> Result<(), Error>; pub fn rollback(&mut self) -> Result<(), Error>;
    pub fn in_transaction(&self) -> bool;
    pub fn set_caller(&mut self, caller: Map);
    pub fn take_log(&mut self) -> Vec<LogLine>;
    pub fn variables(&self) -> Vec<String>; // names of `let` variables, for completion
}
