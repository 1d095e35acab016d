// Threads of Rust take turns to hold a Mutex while a third one waits for it. Says once how long each
// held the Mutex meanwhile, in nanoseconds between two bounds, and the hold of the third. The turns
// are passed on by a Condvar and a channel, where the waking thread holds nothing. With "awaited",
// begins at a line. Ends at a line.
use std::fs;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{mpsc, Arc, Condvar, Mutex, RwLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

const ROUNDS: usize = 5;

extern "C" {
    fn gettid() -> i32;
}

#[derive(Default)]
struct Shared {
    guarded: Mutex<u64>,
    written: RwLock<u64>,
    turn: Mutex<usize>,
    turn_changed: Condvar,
    held: AtomicBool,
    waiter: AtomicI32,
    wanted_ns: AtomicU64,
    released_ns: AtomicU64,
}

fn pass_on(shared: &Shared) {
    *shared.turn.lock().unwrap() += 1;
    shared.turn_changed.notify_all();
}

fn await_turn(shared: &Shared, wanted: usize) {
    let turn = shared.turn.lock().unwrap();
    drop(shared.turn_changed.wait_while(turn, |turn| *turn < wanted).unwrap());
}

fn sleeps(tid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/self/task/{}/stat", tid)).unwrap();
    stat.rsplit(')').next().unwrap().starts_with(" S")
}

fn now(begin: Instant) -> u64 {
    begin.elapsed().as_nanos() as u64
}

// Holds the lock until the third thread has slept for so long. Returns the bounds of that time.
#[inline(never)]
fn hold_while_wanted(shared: &Shared, begin: Instant, hold: Duration) -> (u64, u64) {
    shared.wanted_ns.store(0, Ordering::SeqCst);
    let mut guard = shared.guarded.lock().unwrap();
    shared.held.store(true, Ordering::SeqCst);
    while shared.wanted_ns.load(Ordering::SeqCst) == 0 || !sleeps(shared.waiter.load(Ordering::SeqCst))
    {
        thread::yield_now();
    }
    let slept = now(begin);
    thread::sleep(hold);
    *guard += 1;
    let held = now(begin);
    shared.held.store(false, Ordering::SeqCst);
    shared.released_ns.store(held, Ordering::SeqCst);
    drop(guard);
    (held - slept, now(begin) - shared.wanted_ns.load(Ordering::SeqCst))
}

// Returns the bounds of the time for which the third thread held the lock.
#[inline(never)]
fn want(shared: &Shared, begin: Instant) -> (u64, u64) {
    while !shared.held.load(Ordering::SeqCst) {
        thread::yield_now();
    }
    shared.wanted_ns.store(now(begin), Ordering::SeqCst);
    let mut guard = shared.guarded.lock().unwrap();
    let got = now(begin);
    let released = shared.released_ns.load(Ordering::SeqCst);
    thread::sleep(Duration::from_millis(20));
    *guard += 1;
    let held = now(begin);
    drop(guard);
    (held - got, now(begin) - released)
}

fn holder(shared: Arc<Shared>, begin: Instant, first: usize, hold_ms: u64) -> (i32, u64, u64) {
    let (mut least, mut most) = (0, 0);
    for round in 0..ROUNDS {
        await_turn(&shared, 2 * round + first);
        let (more_than, less_than) = hold_while_wanted(&shared, begin, Duration::from_millis(hold_ms));
        least += more_than;
        most += less_than;
    }
    (unsafe { gettid() }, least, most)
}

// Starts a thread that waits for the lock. Returns when it sleeps. It says when it has the lock.
fn start_waiter(shared: &Arc<Shared>, has: Sender<()>, may_end: Receiver<()>) -> (i32, JoinHandle<()>) {
    shared.waiter.store(0, Ordering::SeqCst);
    let its = shared.clone();
    let thread = thread::spawn(move || {
        its.waiter.store(unsafe { gettid() }, Ordering::SeqCst);
        let guard = its.guarded.lock().unwrap();
        has.send(()).unwrap();
        let _ = may_end.recv();
        drop(guard);
    });
    while shared.waiter.load(Ordering::SeqCst) == 0 || !sleeps(shared.waiter.load(Ordering::SeqCst)) {
        thread::yield_now();
    }
    (shared.waiter.load(Ordering::SeqCst), thread)
}

fn keep() {
    let shared = Arc::new(Shared::default());
    let ((has, got), (end, may_end)) = (mpsc::channel(), mpsc::channel());
    let guard = shared.guarded.lock().unwrap();
    let (holder, first) = start_waiter(&shared, has.clone(), may_end);
    drop(guard);
    got.recv().unwrap();
    let (at_once, may_end_at_once) = mpsc::channel();
    drop(at_once);
    let (waiter, second) = start_waiter(&shared, has, may_end_at_once);
    println!("{{\"holder\": {}, \"waiter\": {}}}", holder, waiter);
    std::io::stdout().flush().unwrap();
    std::io::stdin().read_line(&mut String::new()).unwrap();
    drop(end);
    first.join().unwrap();
    second.join().unwrap();
}

// Holds a RwLock to write while another thread waits to read it, again and again. Begins at a line.
fn write() {
    let shared = Arc::new(Shared::default());
    let (rounds, next_round) = mpsc::channel::<()>();
    let (done, has_read) = mpsc::channel();
    let its = shared.clone();
    thread::spawn(move || {
        its.waiter.store(unsafe { gettid() }, Ordering::SeqCst);
        while next_round.recv().is_ok() {
            its.held.store(true, Ordering::SeqCst);
            drop(its.written.read().unwrap());
            done.send(()).unwrap();
        }
    });
    std::io::stdin().read_line(&mut String::new()).unwrap();
    for _ in 0..ROUNDS {
        shared.held.store(false, Ordering::SeqCst);
        let guard = shared.written.write().unwrap();
        rounds.send(()).unwrap();
        while !shared.held.load(Ordering::SeqCst) || !sleeps(shared.waiter.load(Ordering::SeqCst)) {
            thread::yield_now();
        }
        thread::sleep(Duration::from_millis(20));
        drop(guard);
        has_read.recv().unwrap();
    }
    let reader = shared.waiter.load(Ordering::SeqCst);
    println!("{{\"writer\": {}, \"reader\": {}}}", unsafe { gettid() }, reader);
    std::io::stdout().flush().unwrap();
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("kept") => return keep(),
        Some("written") => return write(),
        Some("awaited") => drop(std::io::stdin().read_line(&mut String::new())),
        _ => {}
    }
    let (shared, begin) = (Arc::new(Shared::default()), Instant::now());
    let (send, receive) = mpsc::channel::<(&str, (i32, u64, u64))>();
    let mut lines = Vec::new();
    let (end, may_end) = mpsc::channel::<()>();
    let may_end = Arc::new(Mutex::new(may_end));
    for (name, first, hold_ms) in [("long", 0, 80), ("brief", 1, 20)] {
        let (shared, send, may_end) = (shared.clone(), send.clone(), may_end.clone());
        thread::spawn(move || {
            send.send((name, holder(shared, begin, first, hold_ms))).unwrap();
            let _ = may_end.lock().unwrap().recv();
        });
    }
    let third = shared.clone();
    thread::spawn(move || {
        third.waiter.store(unsafe { gettid() }, Ordering::SeqCst);
        let (mut least, mut most) = (0, 0);
        for _ in 0..ROUNDS {
            for _ in 0..2 {
                let (more_than, less_than) = want(&third, begin);
                least += more_than;
                most += less_than;
                pass_on(&third);
            }
        }
        send.send(("third", (unsafe { gettid() }, least, most))).unwrap();
    });
    for _ in 0..3 {
        let (name, (tid, least, most)) = receive.recv().unwrap();
        lines.push(format!("\"{}\": [{}, {}, {}]", name, tid, least, most));
    }
    println!("{{{}}}", lines.join(", "));
    std::io::stdout().flush().unwrap();
    std::io::stdin().read_line(&mut String::new()).unwrap();
    end.send(()).unwrap();
    end.send(()).unwrap();
}
