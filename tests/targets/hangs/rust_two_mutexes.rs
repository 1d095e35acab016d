// Two mutexes: four threads fight over the one, two threads take turns at the other.
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

#[inline(never)]
fn charge_account(balance: &Mutex<u64>) {
    let mut guard = balance.lock().unwrap();
    *guard += 1;
    thread::sleep(Duration::from_millis(40));
}

#[inline(never)]
fn read_config(reads: &Mutex<u64>) {
    let mut guard = reads.lock().unwrap();
    *guard += 1;
    thread::sleep(Duration::from_millis(5));
}

fn main() {
    let (balance, reads) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(0)));
    let mut threads = vec![];
    for number in 0..4 {
        let (balance, thread) = (balance.clone(), thread::Builder::new().name(format!("pay-{number}")));
        threads.push(thread.spawn(move || loop { charge_account(&balance); }).unwrap());
    }
    for number in 0..2 {
        let (reads, thread) = (reads.clone(), thread::Builder::new().name(format!("cfg-{number}")));
        threads.push(thread.spawn(move || loop { read_config(&reads); }).unwrap());
    }
    println!("ready");
    for thread in threads {
        thread.join().unwrap();
    }
}
