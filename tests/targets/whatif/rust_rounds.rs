// Threads take a Mutex of Rust in turns, for ever, and sleep or compute while they have it.
//
// rust_rounds THREADS HOLD THINK [THREADS HOLD THINK]...
//
// Each three arguments have a Mutex of their own. HOLD and THINK are sUS or cUS: sleep or compute for US microseconds, with a ~ for a random time
// between 0 and twice that. "ready"; at each line says the rounds, the seconds since the begin, and
// the nanoseconds in which the Mutex was held.
use std::io::{stdin, stdout, BufRead, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

#[derive(Default)]
struct Counted {
    rounds: AtomicU64,
    held_ns: AtomicU64,
}

#[derive(Clone, Copy)]
struct Work {
    computes: bool,
    is_random: bool,
    us: u64,
}

fn work(text: &str) -> Work {
    let us = text.trim_start_matches(|c: char| !c.is_ascii_digit());
    Work {
        computes: text.starts_with('c'),
        is_random: text.contains('~'),
        us: us.parse().unwrap(),
    }
}

impl Work {
    #[inline(never)]
    fn run(self, seed: &mut u64) {
        *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let us = if self.is_random { (*seed >> 33) % (2 * self.us + 1) } else { self.us };
        let length = Duration::from_micros(us);
        if !self.computes {
            thread::sleep(length);
            return;
        }
        // The time on the CPU, so that a busy neighbour makes no difference to the work.
        let begin = cpu_time();
        while cpu_time() - begin < length {}
    }
}

#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

extern "C" {
    fn clock_gettime(clock: i32, time: *mut Timespec) -> i32;
}

fn cpu_time() -> Duration {
    const THREAD_CPU: i32 = 3;
    let mut time = Timespec { seconds: 0, nanoseconds: 0 };
    unsafe { clock_gettime(THREAD_CPU, &mut time) };
    Duration::new(time.seconds as u64, time.nanoseconds as u32)
}

#[inline(never)]
fn update(table: &Mutex<u64>, hold: Work, seed: &mut u64, counted: &Counted) {
    let mut guard = table.lock().unwrap();
    let begin = Instant::now();
    hold.run(seed);
    *guard += 1;
    counted.held_ns.fetch_add(begin.elapsed().as_nanos() as u64, Ordering::Relaxed);
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let counted = Arc::new(Counted::default());
    let begin = Instant::now();
    for group in arguments[1..].chunks(3) {
        let (hold, think) = (work(&group[1]), work(&group[2]));
        let table = Arc::new(Mutex::new(0u64));
        for number in 0..group[0].parse().unwrap() {
            let (table, counted) = (table.clone(), counted.clone());
            let worker = thread::Builder::new().name(format!("worker-{}", number));
            worker
                .spawn(move || {
                    let mut seed = number * 7919 + 1;
                    loop {
                        update(&table, hold, &mut seed, &counted);
                        counted.rounds.fetch_add(1, Ordering::Relaxed);
                        think.run(&mut seed);
                    }
                })
                .unwrap();
        }
    }
    println!("ready");
    for line in stdin().lock().lines() {
        let _ = line.unwrap();
        println!(
            "{{\"rounds\": {}, \"seconds\": {}, \"held_ns\": {}}}",
            counted.rounds.load(Ordering::Relaxed),
            begin.elapsed().as_secs_f64(),
            counted.held_ns.load(Ordering::Relaxed)
        );
        stdout().flush().unwrap();
    }
}
