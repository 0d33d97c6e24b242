//! Budgets: what one call may use. Every bound of a script has its place here, with its unit.

use std::time::Duration;

use crate::transaction::Quota;

/// How many times the one-value bounds a value may hold in all, nested values included.
///
/// The interpreter sums sizes over everything nested in a value; without this factor a `find` that returns
/// sixty small documents would already pass the bound of one map.
pub(super) const WHOLE_VALUE: usize = 16;

/// The same for text: as much as the largest document holds, so that each can be read.
pub(super) const WHOLE_TEXT: usize = 4;

/// What one call may use; passing a bound fails the call with code `budget`.
///
/// `depth`, `text_bytes`, `array_items` and `map_items` are fixed when the program is compiled; the others
/// may be lowered for each call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Wall time.
    pub time: Duration,
    /// Steps of the interpreter, checked every 64.
    pub operations: u64,
    /// Calls within calls. More than 32 may overflow the stack of a 2 MiB thread, so 32 is also the most.
    pub depth: usize,
    /// Bytes of one text.
    pub text_bytes: usize,
    /// Elements of one array, bytes of one blob.
    pub array_items: usize,
    /// Entries of one map.
    pub map_items: usize,
    /// Documents read.
    pub documents_read: u64,
    /// Documents written.
    pub documents_written: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Bytes of one document.
    pub document_bytes: u64,
    /// Bytes of the arguments, as JSON.
    pub argument_bytes: usize,
    /// Lines logged.
    pub log_lines: usize,
    /// Bytes logged, over all lines.
    pub log_bytes: usize,
}

impl Default for Budget {
    fn default() -> Self {
        let quota = Quota::default();
        Budget {
            time: Duration::from_millis(100),
            operations: 200_000,
            depth: MOST_DEPTH,
            text_bytes: 64 << 10,
            array_items: 1024,
            map_items: 256,
            documents_read: quota.documents_read,
            documents_written: quota.documents_written,
            bytes_written: quota.bytes_written,
            document_bytes: quota.document_bytes,
            argument_bytes: 256 << 10,
            log_lines: 1000,
            log_bytes: 256 << 10,
        }
    }
}

/// Calls within calls that fit on the stack of a 2 MiB thread, in the worst construct and in either build.
pub(super) const MOST_DEPTH: usize = 32;

impl Budget {
    /// The part that the transaction counts.
    pub(crate) fn quota(&self) -> Quota {
        Quota {
            documents_read: self.documents_read,
            documents_written: self.documents_written,
            bytes_written: self.bytes_written,
            document_bytes: self.document_bytes,
        }
    }
}
