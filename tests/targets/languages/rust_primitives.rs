// Locks of the Rust library: rust_primitives mutex|rwlock|condvar|channel|once. Threads add up with
// the primitive; then a second thread waits for the first. Says {"sum": ..., "waiter": tid} before
// the second thread continues, and "ok" when all has ended well.
use std::io::Write;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{mpsc, Arc, Condvar, Mutex, Once, RwLock};
use std::thread;

const THREADS: i64 = 4;
const ROUNDS: i64 = 20000;

extern "C" {
    fn gettid() -> i32;
}

static WAITER: AtomicI64 = AtomicI64::new(0);

fn i_wait() {
    WAITER.store(unsafe { gettid() } as i64, Ordering::SeqCst);
}

fn say(line: &str) {
    println!("{}", line);
    std::io::stdout().flush().unwrap();
}

// Says that the second thread waits or is about to wait. Returns at a line.
fn report(sum: i64) {
    while WAITER.load(Ordering::SeqCst) == 0 {
        thread::yield_now();
    }
    say(&format!("{{\"sum\": {}, \"waiter\": {}}}", sum, WAITER.load(Ordering::SeqCst)));
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

fn all<F: Fn() + Send + Sync + 'static>(work: F) {
    let work = Arc::new(work);
    let threads: Vec<_> = (0..THREADS)
        .map(|_| {
            let work = work.clone();
            thread::spawn(move || (0..ROUNDS).for_each(|_| work()))
        })
        .collect();
    threads.into_iter().for_each(|one| one.join().unwrap());
}

fn mutex() -> i64 {
    let sum = Arc::new(Mutex::new(0i64));
    let adding = sum.clone();
    all(move || *adding.lock().unwrap() += 1);
    let held = sum.lock().unwrap();
    let wanted = sum.clone();
    let second = thread::spawn(move || {
        i_wait();
        *wanted.lock().unwrap() += 1;
    });
    report(*held);
    drop(held);
    second.join().unwrap();
    let end = *sum.lock().unwrap();
    end
}

fn rwlock() -> i64 {
    let sum = Arc::new(RwLock::new(0i64));
    let adding = sum.clone();
    all(move || *adding.write().unwrap() += 1);
    let held = sum.read().unwrap();
    let wanted = sum.clone();
    let second = thread::spawn(move || {
        i_wait();
        *wanted.write().unwrap() += 1;
    });
    report(*held);
    drop(held);
    second.join().unwrap();
    let end = *sum.read().unwrap();
    end
}

fn condvar() -> i64 {
    let shared = Arc::new((Mutex::new(0i64), Condvar::new()));
    let adding = shared.clone();
    all(move || {
        *adding.0.lock().unwrap() += 1;
        adding.1.notify_all();
    });
    let wanted = shared.clone();
    let second = thread::spawn(move || {
        i_wait();
        let sum = wanted.0.lock().unwrap();
        drop(wanted.1.wait_while(sum, |sum| *sum <= THREADS * ROUNDS).unwrap());
    });
    let sum = *shared.0.lock().unwrap();
    report(sum);
    *shared.0.lock().unwrap() += 1;
    shared.1.notify_all();
    second.join().unwrap();
    let end = *shared.0.lock().unwrap();
    end
}

fn channel() -> i64 {
    let (send, receive) = mpsc::channel::<i64>();
    let sending = Mutex::new(send.clone());
    let summing = thread::spawn(move || {
        i_wait();
        receive.iter().sum::<i64>()
    });
    all(move || sending.lock().unwrap().send(1).unwrap());
    report(THREADS * ROUNDS);
    send.send(1).unwrap();
    drop(send);
    summing.join().unwrap()
}

fn once() -> i64 {
    static ONCE: Once = Once::new();
    static SUM: AtomicI64 = AtomicI64::new(0);
    all(|| {
        SUM.fetch_add(1, Ordering::SeqCst);
    });
    let mut second = None;
    ONCE.call_once(|| {
        second = Some(thread::spawn(|| {
            i_wait();
            ONCE.call_once(|| unreachable!());
            SUM.fetch_add(1, Ordering::SeqCst);
        }));
        report(SUM.load(Ordering::SeqCst));
    });
    second.unwrap().join().unwrap();
    SUM.load(Ordering::SeqCst)
}

fn main() {
    let end = match std::env::args().nth(1).as_deref() {
        Some("mutex") => mutex(),
        Some("rwlock") => rwlock(),
        Some("condvar") => condvar(),
        Some("channel") => channel(),
        _ => once(),
    };
    let good = end == THREADS * ROUNDS + 1;
    say(if good { "ok" } else { "failed" });
    std::process::exit(!good as i32);
}
