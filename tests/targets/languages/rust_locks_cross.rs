// Two threads that cross on two locks: rust_locks_cross std|pthread|alike.
//
//   std      locks of the Rust library, which wait in the futex system call and do not say
//            their holder
//   pthread  locks of pthreads, called as a crate would call them
//   alike    the first thread has both locks, and one of two others waits for each; the bytes
//            behind the word of each lock read like a pthreads mutex that the other thread holds
//
// Says {"tids": [...], "locks": ["0x...", ...]} when all threads wait or are about to wait. `alike`
// then continues at a line and says "ok".
use std::io::Write;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering::SeqCst};
use std::sync::Mutex;
use std::thread;

extern "C" {
    fn gettid() -> i32;
    fn pthread_mutex_lock(mutex: *mut [u64; 5]) -> i32;
}

/// The fields that a pthreads mutex would have: count, owner, users, kind, and a list.
#[repr(align(8))]
struct Alike(Mutex<[u32; 10]>);

static mut RAW: [[u64; 5]; 2] = [[0; 5]; 2];
static STD: [Alike; 2] = [Alike(Mutex::new([0; 10])), Alike(Mutex::new([0; 10]))];
static TIDS: [AtomicI64; 2] = [AtomicI64::new(0), AtomicI64::new(0)];
static HAVE: AtomicUsize = AtomicUsize::new(0);

fn begin(number: usize) {
    TIDS[number].store(unsafe { gettid() } as i64, SeqCst);
}

fn meet() {
    HAVE.fetch_add(1, SeqCst);
    while HAVE.load(SeqCst) < 2 {
        thread::yield_now();
    }
}

fn say(line: String) {
    println!("{}", line);
    std::io::stdout().flush().unwrap();
}

fn report(addresses: [usize; 2]) {
    let tids: Vec<i64> = TIDS.iter().map(|tid| tid.load(SeqCst)).collect();
    let [one, other] = addresses;
    say(format!("{{\"tids\": {:?}, \"locks\": [\"{:#x}\", \"{:#x}\"]}}", tids, one, other));
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

#[inline(never)]
fn crosses_std(number: usize) {
    begin(number);
    let _first = STD[number].0.lock().unwrap();
    meet();
    let _second = STD[1 - number].0.lock().unwrap();
}

#[inline(never)]
fn crosses_pthread(number: usize) {
    begin(number);
    let raw = std::ptr::addr_of_mut!(RAW) as *mut [u64; 5];
    unsafe {
        pthread_mutex_lock(raw.add(number));
        meet();
        pthread_mutex_lock(raw.add(1 - number));
    }
}

#[inline(never)]
fn waits_for_one(number: usize) {
    begin(number);
    meet();
    STD[number].0.lock().unwrap()[5] += 1;
}

fn cross(work: fn(usize), addresses: [usize; 2]) {
    for number in 0..2 {
        thread::spawn(move || work(number));
    }
    while HAVE.load(SeqCst) < 2 {
        thread::yield_now();
    }
    report(addresses);
}

fn alike(addresses: [usize; 2]) {
    let mut held = [STD[0].0.lock().unwrap(), STD[1].0.lock().unwrap()];
    let threads = [0, 1].map(|number| thread::spawn(move || waits_for_one(number)));
    while HAVE.load(SeqCst) < 2 {
        thread::yield_now();
    }
    for number in 0..2 {
        // The word, a flag and three bytes of padding are eight bytes: count is 0.
        held[number][0] = TIDS[1 - number].load(SeqCst) as u32;
        held[number][1] = 1;
    }
    report(addresses);
    drop(held);
    for one in threads {
        one.join().unwrap();
    }
    say("ok".to_string());
}

fn main() {
    let std_at = [0, 1].map(|number| &STD[number] as *const Alike as usize);
    #[allow(unused_unsafe)] // older compilers ask for it
    let raw_at = unsafe { std::ptr::addr_of_mut!(RAW) as usize };
    match std::env::args().nth(1).as_deref() {
        Some("std") => cross(crosses_std, std_at),
        Some("pthread") => cross(crosses_pthread, [raw_at, raw_at + 40]),
        _ => alike(std_at),
    }
}
