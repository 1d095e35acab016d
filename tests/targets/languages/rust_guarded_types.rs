// Threads wait for locks of Rust whose type tells the data: Mutex<Journal>, RwLock<Vec<Entry>> and
// Mutex<u64>. Says {"waiters": [tid, ...]}, in that order, when all three are about to wait.
use std::io::Write;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::thread;

extern "C" {
    fn gettid() -> i32;
}

struct Journal {
    lines: u64,
}

struct Entry {
    size: u64,
}

struct Store {
    journal: Mutex<Journal>,
    entries: RwLock<Vec<Entry>>,
    count: Mutex<u64>,
    tids: [AtomicI64; 3],
}

impl Store {
    fn begin(&self, number: usize) {
        self.tids[number].store(unsafe { gettid() } as i64, Ordering::SeqCst);
    }

    #[inline(never)]
    fn append(&self) {
        self.begin(0);
        self.journal.lock().unwrap().lines += 1;
    }

    #[inline(never)]
    fn put(&self) {
        self.begin(1);
        self.entries.write().unwrap().push(Entry { size: 1 });
    }

    #[inline(never)]
    fn add(&self) {
        self.begin(2);
        *self.count.lock().unwrap() += 1;
    }
}

fn main() {
    let store = Arc::new(Store {
        journal: Mutex::new(Journal { lines: 0 }),
        entries: RwLock::new(Vec::new()),
        count: Mutex::new(0),
        tids: [AtomicI64::new(0), AtomicI64::new(0), AtomicI64::new(0)],
    });
    let journal = store.journal.lock().unwrap();
    let entries = store.entries.read().unwrap();
    let count = store.count.lock().unwrap();
    for work in [Store::append, Store::put, Store::add] {
        let store = store.clone();
        thread::spawn(move || work(&store));
    }
    while store.tids.iter().any(|tid| tid.load(Ordering::SeqCst) == 0) {
        thread::yield_now();
    }
    let tids: Vec<_> = store.tids.iter().map(|tid| tid.load(Ordering::SeqCst).to_string()).collect();
    println!("{{\"waiters\": [{}]}}", tids.join(", "));
    std::io::stdout().flush().unwrap();
    std::io::stdin().read_line(&mut String::new()).unwrap();
    println!("{}", journal.lines + count.wrapping_add(entries.iter().map(|entry| entry.size).sum()));
    std::process::exit(0);
}
