//! Journal: groups of writes in the order they were made, appended to files and synced.
//!
//! A segment is a file `<first group, 16 hex digits>.log`: a header (magic `TOLLGATE`, version, the number of
//! its first group), then records. A record is the body's length, the body's CRC-32, the CRC-32 of these two, and
//! the body: group number, then rows of key length, value length (`u32::MAX` deletes), key, value; all numbers
//! little-endian. Groups are numbered without a gap over all segments, so a lost record or segment shows.
//!
//! A record is synced before the next is written, so a crash can tear only the last one: a tail that ends
//! short, or in zeros, was never acknowledged and is cut off. A record that is all there and does not match its
//! checksum is damage, and is said to be.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use super::{Batch, StoreError, Write};

const MAGIC: &[u8; 8] = b"TOLLGATE";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 20;
/// Length of the body, its checksum, and the checksum of both.
const RECORD_HEADER_BYTES: usize = 12;
const DELETED: u32 = u32::MAX;

/// The open end of the journal, and the segments behind it.
pub(super) struct Journal {
    folder: PathBuf,
    file: File,
    /// Bytes in the segment that is being written, header included.
    length: u64,
    /// The number of the next group.
    next: u64,
    /// Every segment, oldest first, the one being written last.
    segments: Vec<PathBuf>,
    /// Reused for each record.
    record: Vec<u8>,
    /// The first failure. Behind a record that may be torn nothing may be written: it would make the tear look
    /// like damage, or give one number to two groups.
    broken: Option<StoreError>,
}

impl Journal {
    /// Opens the journal in `folder`, hands every group that is in it to `replay` in order, and cuts a torn tail off.
    pub(super) fn open(folder: &Path, mut replay: impl FnMut(Batch)) -> Result<Journal, StoreError> {
        let fail = |cause: std::io::Error| StoreError::io(format!("opening {}", folder.display()), cause);
        let mut segments = list(folder).map_err(fail)?;
        let mut expected = None;
        let mut whole = 0;
        let mut unborn = false;
        for index in 0..segments.len() {
            let path = &segments[index];
            let mut bytes = Vec::new();
            File::open(path).and_then(|mut file| file.read_to_end(&mut bytes)).map_err(fail)?;
            let last = index + 1 == segments.len();
            let nothing = bytes.len() == HEADER_BYTES && bytes.iter().all(|byte| *byte == 0);
            if last && (bytes.len() < HEADER_BYTES || nothing) {
                // The crash came while the segment was being made; nothing can be in it.
                unborn = true;
                break;
            }
            let first = read_header(path, &bytes)?;
            if expected.is_some_and(|expected| expected != first) {
                return Err(damaged(path, "does not begin where the segment before it ends"));
            }
            let mut groups = Groups { path, bytes: &bytes, at: HEADER_BYTES, number: first };
            while let Some(batch) = groups.next()? {
                replay(batch);
            }
            if groups.at < bytes.len() && !last {
                return Err(damaged(path, "is cut short"));
            }
            expected = Some(groups.number);
            whole = groups.at as u64;
        }
        let next = expected.unwrap_or(1);
        if unborn && let Some(path) = segments.pop() {
            fs::remove_file(path).map_err(fail)?;
        }
        let (file, length) = match segments.last() {
            Some(path) if !unborn => {
                let mut file = OpenOptions::new().write(true).open(path).map_err(fail)?;
                file.set_len(whole).and_then(|()| file.seek(SeekFrom::Start(whole))).map_err(fail)?;
                file.sync_all().map_err(fail)?;
                (file, whole)
            }
            _ => {
                let (path, file) = create(folder, next).map_err(fail)?;
                segments.push(path);
                (file, HEADER_BYTES as u64)
            }
        };
        Ok(Journal { folder: folder.to_owned(), file, length, next, segments, record: Vec::new(), broken: None })
    }

    /// Appends a group; [`Journal::sync`] makes it last.
    pub(super) fn append(&mut self, batch: &Batch) -> Result<(), StoreError> {
        self.unless_broken(|journal| journal.write(batch))
    }

    fn unless_broken<T>(&mut self, work: impl FnOnce(&mut Journal) -> Result<T, StoreError>) -> Result<T, StoreError> {
        if let Some(cause) = &self.broken {
            return Err(cause.clone());
        }
        let result = work(self);
        self.broken = result.as_ref().err().cloned();
        result
    }

    fn write(&mut self, batch: &Batch) -> Result<(), StoreError> {
        let record = &mut self.record;
        record.clear();
        record.extend_from_slice(&[0; RECORD_HEADER_BYTES]);
        record.extend_from_slice(&self.next.to_le_bytes());
        for (key, value) in batch {
            let value_length = value.as_ref().map_or(DELETED, |value| value.len() as u32);
            record.extend_from_slice(&(key.len() as u32).to_le_bytes());
            record.extend_from_slice(&value_length.to_le_bytes());
            record.extend_from_slice(key);
            record.extend_from_slice(value.as_deref().unwrap_or_default());
        }
        let fail = |cause| StoreError::io(format!("writing to {}", self.folder.display()), cause);
        let length = u32::try_from(record.len() - RECORD_HEADER_BYTES)
            .map_err(|_| fail(std::io::Error::other("one group of writes is over 4 GiB")))?;
        let checksum = crc32fast::hash(&record[RECORD_HEADER_BYTES..]);
        record[..4].copy_from_slice(&length.to_le_bytes());
        record[4..8].copy_from_slice(&checksum.to_le_bytes());
        let checksum = crc32fast::hash(&record[..8]);
        record[8..12].copy_from_slice(&checksum.to_le_bytes());
        self.file.write_all(record).map_err(fail)?;
        self.length += record.len() as u64;
        self.next += 1;
        // A large group passes; the memory it took does not stay.
        if record.capacity() > 1 << 20 {
            *record = Vec::new();
        }
        Ok(())
    }

    /// Returns when every group appended so far survives a power cut.
    pub(super) fn sync(&mut self) -> Result<(), StoreError> {
        self.unless_broken(|journal| {
            let fail = |cause| StoreError::io(format!("syncing {}", journal.folder.display()), cause);
            journal.file.sync_data().map_err(fail)
        })
    }

    /// The number of the next group.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// The number of the first group that is still here, or would be.
    pub(super) fn first(&self) -> u64 {
        let oldest = self.segments.first().and_then(|path| number_of(path));
        oldest.unwrap_or(self.next)
    }

    /// Bytes in the segment being written.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Whether nothing was written since the last rotation.
    pub(super) fn is_empty(&self) -> bool {
        self.length == HEADER_BYTES as u64 && self.segments.len() == 1
    }

    /// Begins a new segment; returns those before it, which may be removed once their rows are elsewhere.
    pub(super) fn rotate(&mut self) -> Result<Vec<PathBuf>, StoreError> {
        self.unless_broken(Journal::begin_segment)
    }

    fn begin_segment(&mut self) -> Result<Vec<PathBuf>, StoreError> {
        let fail = |cause| StoreError::io(format!("writing to {}", self.folder.display()), cause);
        if self.length == HEADER_BYTES as u64 {
            // Nothing is in the segment being written: a new one would have its name.
            let current = self.segments.len() - 1;
            return Ok(self.segments.drain(..current).collect());
        }
        self.file.sync_data().map_err(fail)?;
        let (path, file) = create(&self.folder, self.next).map_err(fail)?;
        (self.file, self.length) = (file, HEADER_BYTES as u64);
        Ok(std::mem::replace(&mut self.segments, vec![path]))
    }
}

/// Makes a segment whose first group will be `first`, and syncs it and its name.
fn create(folder: &Path, first: u64) -> std::io::Result<(PathBuf, File)> {
    let path = folder.join(format!("{first:016x}.log"));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(&path)?;
    let mut header = Vec::with_capacity(HEADER_BYTES);
    header.extend_from_slice(MAGIC);
    header.extend_from_slice(&VERSION.to_le_bytes());
    header.extend_from_slice(&first.to_le_bytes());
    file.write_all(&header)?;
    file.sync_all()?;
    File::open(folder)?.sync_all()?;
    Ok((path, file))
}

/// The segments of a folder, oldest first.
fn list(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut segments = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "log") {
            segments.push(path);
        }
    }
    segments.sort();
    Ok(segments)
}

fn damaged(path: &Path, how: &str) -> StoreError {
    StoreError::Corrupt(format!("the journal {} {how}", path.display()))
}

fn read_header(path: &Path, bytes: &[u8]) -> Result<u64, StoreError> {
    let header = bytes.get(..HEADER_BYTES).ok_or_else(|| damaged(path, "has no whole header"))?;
    if &header[..8] != MAGIC {
        return Err(damaged(path, "does not begin as a journal does"));
    }
    let version = read_u32(header, 8).unwrap_or_default();
    if version > VERSION {
        return Err(StoreError::NewerFormat { found: version, supported: VERSION });
    }
    let first = header[12..].try_into().map(u64::from_le_bytes).unwrap_or_default();
    if version == 0 || number_of(path) != Some(first) {
        return Err(damaged(path, "has a header that cannot be right"));
    }
    Ok(first)
}

/// The number that a segment's name says its first group has.
fn number_of(path: &Path) -> Option<u64> {
    u64::from_str_radix(path.file_stem()?.to_str()?, 16).ok()
}

fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|four| u32::from_le_bytes(*four))
}

/// The groups of one segment.
struct Groups<'a> {
    path: &'a Path,
    bytes: &'a [u8],
    /// Where the next record begins: the end of the whole ones, when there is no next.
    at: usize,
    number: u64,
}

impl Groups<'_> {
    /// The next group; none at the end or at a torn tail.
    fn next(&mut self) -> Result<Option<Batch>, StoreError> {
        let rest = &self.bytes[self.at..];
        if rest.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let Some(header) = rest.get(..RECORD_HEADER_BYTES) else { return Ok(None) };
        let [length, checksum, of_header] = [0, 4, 8].map(|at| read_u32(header, at).unwrap_or_default());
        let mismatch = || damaged(self.path, &format!("does not match its checksum at byte {}", self.at));
        if crc32fast::hash(&header[..8]) != of_header {
            return Err(mismatch());
        }
        let Some(body) = rest[RECORD_HEADER_BYTES..].get(..length as usize) else { return Ok(None) };
        if crc32fast::hash(body) != checksum {
            return Err(mismatch());
        }
        let unreadable = || damaged(self.path, &format!("has an unreadable group at byte {}", self.at));
        let (number, mut rows) = body.split_first_chunk().ok_or_else(unreadable)?;
        if u64::from_le_bytes(*number) != self.number {
            return Err(damaged(self.path, &format!("lacks group {}", self.number)));
        }
        let mut batch = Batch::new();
        while !rows.is_empty() {
            let (row, rest) = take_row(rows).ok_or_else(unreadable)?;
            batch.push(row);
            rows = rest;
        }
        self.at += RECORD_HEADER_BYTES + length as usize;
        self.number += 1;
        Ok(Some(batch))
    }
}

fn take_row(rows: &[u8]) -> Option<(Write, &[u8])> {
    let (key_length, value_length) = (read_u32(rows, 0)?, read_u32(rows, 4)?);
    let (key, rest) = rows.get(8..)?.split_at_checked(key_length as usize)?;
    if value_length == DELETED {
        return Some(((key.into(), None), rest));
    }
    let (value, rest) = rest.split_at_checked(value_length as usize)?;
    Some(((key.into(), Some(value.into())), rest))
}
