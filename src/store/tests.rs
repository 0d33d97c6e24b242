//! Unit tests of the stores: the same promises on memory and on disk, and the disk's behaviour after faults.
use std::collections::BTreeMap;
use std::fs;
use std::ops::Bound;
use std::path::Path;

use proptest::prelude::*;

use super::disk::DiskStore;
use super::*;

fn bytes(text: &str) -> Bytes {
    text.as_bytes().into()
}

fn put(store: &dyn Store, rows: &[(&str, Option<&str>)]) {
    let batch = rows.iter().map(|(key, value)| (bytes(key), value.map(bytes))).collect();
    store.apply(&batch).unwrap();
    store.flush().unwrap();
}

fn dump(store: &dyn Store) -> String {
    let mut rows = Vec::new();
    let all = Range { low: Bound::Unbounded, high: Bound::Unbounded };
    store.scan(&all, Direction::Ascending, usize::MAX, &mut rows).unwrap();
    let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
    rows.iter().map(|(key, value)| format!("{}={}", text(key), text(value))).collect::<Vec<_>>().join(" ")
}

fn segments(path: &Path) -> Vec<std::path::PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(path.join("journal")).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// One step against a store.
#[derive(Clone, Debug)]
enum Step {
    Apply(Vec<(u8, Option<u8>)>),
    Checkpoint,
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => proptest::collection::vec((0u8..20, proptest::option::of(any::<u8>())), 1..6).prop_map(Step::Apply),
        1 => Just(Step::Checkpoint),
        1 => Just(Step::Reopen),
    ];
    proptest::collection::vec(step, 1..20)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn memory_and_disk_answer_as_a_map_does(steps in steps(), low in 0u8..20, width in 0u8..20, limit in 0usize..8) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("db");
        let mut model: BTreeMap<Bytes, Bytes> = BTreeMap::new();
        let memory = MemoryStore::new();
        let mut disk = DiskStore::open(&path).unwrap();
        for step in steps {
            match step {
                Step::Apply(rows) => {
                    let batch: Batch = rows.iter().map(|(key, value)| ([*key].as_slice().into(), value.map(|v| [v].as_slice().into()))).collect();
                    for (key, value) in &batch {
                        match value {
                            Some(value) => { model.insert(key.clone(), value.clone()); }
                            None => { model.remove(key); }
                        }
                    }
                    memory.apply(&batch).unwrap();
                    disk.apply(&batch).unwrap();
                }
                Step::Checkpoint => disk.compact().unwrap(),
                Step::Reopen => {
                    disk.flush().unwrap();
                    drop(disk);
                    disk = DiskStore::open(&path).unwrap();
                }
            }
        }
        let range = Range { low: Bound::Included([low].as_slice().into()), high: Bound::Excluded([low + width].as_slice().into()) };
        for direction in [Direction::Ascending, Direction::Descending] {
            let mut expected: Vec<Pair> = model.iter().filter(|(key, _)| range.contains(key)).map(|(k, v)| (k.clone(), v.clone())).collect();
            if direction == Direction::Descending {
                expected.reverse();
            }
            expected.truncate(limit);
            for store in [&memory as &dyn Store, &disk] {
                let mut rows = Vec::new();
                store.scan(&range, direction, limit, &mut rows).unwrap();
                prop_assert_eq!(&rows, &expected);
            }
        }
        for key in 0..20u8 {
            prop_assert_eq!(memory.get(&[key]).unwrap(), model.get(&[key][..]).cloned());
            prop_assert_eq!(disk.get(&[key]).unwrap(), model.get(&[key][..]).cloned());
        }
    }
}

#[test]
fn a_second_opening_is_told_who_holds_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let _held = DiskStore::open(&path).unwrap();
    let busy = DiskStore::open(&path).err().unwrap();
    assert_eq!(busy, StoreError::Busy { path: path.display().to_string(), pid: std::process::id() });
}

#[test]
fn a_folder_of_other_things_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("letter.txt"), "dear").unwrap();
    let error = DiskStore::open(folder.path()).err().unwrap().to_string();
    assert!(error.contains("holds no store"), "{error}");
    let error = DiskStore::open(&folder.path().join("letter.txt")).err().unwrap().to_string();
    assert!(error.contains("it is a file"), "{error}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_a_store() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let _store = DiskStore::open(&path).unwrap();
    assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o077, 0);
}

#[test]
fn every_cut_of_the_journal_leaves_a_prefix() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let store = DiskStore::open(&path).unwrap();
    let mut ends = vec![0];
    let mut states = vec![String::new()];
    for n in 0..3 {
        put(&store, &[(&format!("k{n}"), Some("v")), ("last", Some(&n.to_string()))]);
        ends.push(fs::metadata(&segments(&path)[0]).unwrap().len() as usize);
        states.push(dump(&store));
    }
    drop(store);
    let segment = segments(&path)[0].clone();
    let whole = fs::read(&segment).unwrap();
    for cut in 0..=whole.len() {
        fs::write(&segment, &whole[..cut]).unwrap();
        let store = DiskStore::open(&path).unwrap();
        let groups = ends.iter().rposition(|end| *end <= cut).unwrap();
        assert_eq!(dump(&store), states[groups], "cut at byte {cut}");
        put(&store, &[("after", Some("1"))]);
        drop(store);
        let store = DiskStore::open(&path).unwrap();
        assert!(dump(&store).starts_with("after=1"), "cut at byte {cut}");
        drop(store);
        // The segment may have been made anew under the same name.
        assert_eq!(segments(&path).len(), 1);
    }
}

#[test]
fn a_flipped_bit_is_damage_and_not_a_shorter_journal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let store = DiskStore::open(&path).unwrap();
    put(&store, &[("a", Some("1"))]);
    put(&store, &[("b", Some("2"))]);
    drop(store);
    let segment = segments(&path)[0].clone();
    let whole = fs::read(&segment).unwrap();
    for at in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[at] ^= 0x10;
        fs::write(&segment, &flipped).unwrap();
        match DiskStore::open(&path) {
            Err(StoreError::Corrupt(_) | StoreError::NewerFormat { .. }) => {}
            Err(other) => panic!("byte {at}: {other}"),
            Ok(store) => panic!("byte {at}: opened with {:?}", dump(&store)),
        }
    }
}

#[test]
fn a_lost_segment_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = super::journal::Journal::open(folder.path(), |_| ()).unwrap();
    for n in 0..3u8 {
        journal.append(&vec![([n].as_slice().into(), None)]).unwrap();
        journal.rotate().unwrap();
    }
    drop(journal);
    let mut paths: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    fs::remove_file(&paths[1]).unwrap();
    let error = super::journal::Journal::open(folder.path(), |_| ()).err().unwrap().to_string();
    assert!(error.contains("does not begin where the segment before it ends"), "{error}");
}

#[test]
fn compacting_keeps_every_row_and_leaves_one_tree() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let store = DiskStore::open(&path).unwrap();
    for n in 0..500 {
        put(&store, &[(&format!("k{n:03}"), Some("v"))]);
    }
    for n in 0..490 {
        put(&store, &[(&format!("k{n:03}"), None)]);
    }
    let before = dump(&store);
    store.compact().unwrap();
    store.compact().unwrap();
    assert_eq!(dump(&store), before);
    drop(store);
    let store = DiskStore::open(&path).unwrap();
    assert_eq!(dump(&store), before);
    let trees = fs::read_dir(&path)
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("tree"))
        .count();
    assert_eq!(trees, 1);
}
