// Six threads of Rust queue for a Mutex<Journal>, which each of them holds briefly. With "held" the
// thread flusher has it instead, and reads from a pipe that stays empty. Says "ready"; with "held"
// when the others sleep. Ends at the end of stdin.
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

const WRITERS: usize = 6;

extern "C" {
    fn gettid() -> i32;
}

struct Journal {
    lines: Vec<u64>,
}

#[inline(never)]
fn append(journal: &Mutex<Journal>, number: u64) {
    let mut guard = journal.lock().unwrap();
    for line in 0..20000u64 {
        let place = (line % 64) as usize;
        guard.lines[place] = guard.lines[place].wrapping_add(number ^ line);
    }
}

#[inline(never)]
fn flush(journal: &Mutex<Journal>, held: &AtomicI32, disk: &mut UnixStream) {
    let mut guard = journal.lock().unwrap();
    held.store(1, Ordering::SeqCst);
    let mut answer = [0u8; 1];
    disk.read_exact(&mut answer).unwrap();
    guard.lines[0] = answer[0] as u64;
}

fn sleeps(tid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/self/task/{}/stat", tid)).unwrap();
    stat.rsplit(')').next().unwrap().starts_with(" S")
}

fn start(name: &str, work: impl FnOnce() + Send + 'static) {
    thread::Builder::new().name(name.to_string()).spawn(work).unwrap();
}

fn main() {
    let journal = Arc::new(Mutex::new(Journal { lines: vec![0; 64] }));
    let (held, (mut disk, _silent)) = (Arc::new(AtomicI32::new(0)), UnixStream::pair().unwrap());
    let is_held = std::env::args().nth(1).as_deref() == Some("held");
    if is_held {
        let (journal, its) = (journal.clone(), held.clone());
        start("flusher", move || flush(&journal, &its, &mut disk));
        while held.load(Ordering::SeqCst) == 0 {
            thread::yield_now();
        }
    }
    let tids: Arc<Vec<AtomicI32>> = Arc::new((0..WRITERS).map(|_| AtomicI32::new(0)).collect());
    for number in 0..WRITERS {
        let (journal, tids) = (journal.clone(), tids.clone());
        start(&format!("writer-{}", number), move || {
            tids[number].store(unsafe { gettid() }, Ordering::SeqCst);
            loop {
                append(&journal, number as u64);
            }
        });
    }
    for tid in tids.iter() {
        while tid.load(Ordering::SeqCst) == 0 || is_held && !sleeps(tid.load(Ordering::SeqCst)) {
            thread::yield_now();
        }
    }
    println!("ready");
    std::io::stdout().flush().unwrap();
    std::io::stdin().read_line(&mut String::new()).unwrap();
    std::process::exit(0);
}
