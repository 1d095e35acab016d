//! Healthy threads that hold Rust locks for seconds.
//!
//! Locks are those of std, or with --cfg parking_lot those of parking_lot. Threads take locks in one
//! order, read together, and wait at a condition. Says "ready", and ends with its stdin.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

#[cfg(not(parking_lot))]
mod locks {
    pub use std::sync::{Condvar, Mutex, MutexGuard, RwLock};
    pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap()
    }
    pub fn read(lock: &RwLock<u64>) -> u64 {
        let guard = lock.read().unwrap();
        super::sleep(*guard);
        *guard
    }
    pub fn write(lock: &RwLock<u64>) {
        let mut guard = lock.write().unwrap();
        super::sleep(*guard);
        *guard += 1;
    }
    pub fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        condition.wait(guard).unwrap()
    }
}
#[cfg(parking_lot)]
mod locks {
    pub use parking_lot::{Condvar, Mutex, MutexGuard, RwLock};
    pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock()
    }
    pub fn read(lock: &RwLock<u64>) -> u64 {
        let guard = lock.read();
        super::sleep(*guard);
        *guard
    }
    pub fn write(lock: &RwLock<u64>) {
        let mut guard = lock.write();
        super::sleep(*guard);
        *guard += 1;
    }
    pub fn wait<'a, T>(condition: &Condvar, mut guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        condition.wait(&mut guard);
        guard
    }
}
use locks::{lock, read, wait, write, Condvar, Mutex, RwLock};

fn sleep(chance: u64) {
    thread::sleep(Duration::from_millis(chance.wrapping_mul(2654435761) % 3000));
}

fn nest(mutexes: &[Mutex<u64>], chance: u64) -> u64 {
    if mutexes.is_empty() {
        return 0;
    }
    let first = &mutexes[0];
    let mut guard = lock(first);
    *guard += 1;
    sleep(*guard + chance);
    let skipped = (*guard as usize + 1) % 2 + 1;
    *guard + nest(&mutexes[skipped.min(mutexes.len())..], chance + 1)
}

fn main() {
    let mutexes: Arc<Vec<Mutex<u64>>> = Arc::new((0..4).map(Mutex::new).collect());
    let data = Arc::new(RwLock::new(1));
    let pair = Arc::new((Mutex::new(0), Condvar::new()));
    for number in 0..6 {
        let mutexes = mutexes.clone();
        thread::spawn(move || loop {
            nest(&mutexes[number % 4..], number as u64);
        });
    }
    for number in 0..4 {
        let (data, mutexes, pair) = (data.clone(), mutexes.clone(), pair.clone());
        thread::spawn(move || loop {
            {
                let mut jobs = lock(&pair.0);
                while *jobs == 0 {
                    jobs = wait(&pair.1, jobs);
                }
                *jobs -= 1;
            }
            read(&data);
            *lock(&mutexes[number]) += 1;
            write(&data);
        });
    }
    thread::spawn(move || loop {
        thread::sleep(Duration::from_secs(2));
        *lock(&pair.0) += 4;
        pair.1.notify_all();
    });
    println!("ready");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    std::process::exit(0);
}
