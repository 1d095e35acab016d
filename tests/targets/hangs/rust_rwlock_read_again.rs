// A thread reads a RwLock, and reads it again. A writer came between.
use std::sync::{Arc, Barrier, RwLock};
use std::thread;
use std::time::Duration;

struct Ledger {
    height: u64,
}

#[inline(never)]
fn channel_updated(ledger: &RwLock<Ledger>) -> u64 {
    ledger.read().unwrap().height
}

#[inline(never)]
fn process_events(ledger: &RwLock<Ledger>, is_read: &Barrier) -> u64 {
    let guard = ledger.read().unwrap();
    is_read.wait();
    // Until the writer waits.
    while ledger.try_read().is_ok() {
        thread::sleep(Duration::from_millis(1));
    }
    guard.height + channel_updated(ledger)
}

#[inline(never)]
fn apply_block(ledger: &RwLock<Ledger>) {
    ledger.write().unwrap().height += 1;
}

fn main() {
    let ledger = Arc::new(RwLock::new(Ledger { height: 1 }));
    let is_read = Arc::new(Barrier::new(2));
    let (read, written, reads) = (ledger.clone(), ledger.clone(), is_read.clone());
    let reader = thread::Builder::new().name("poller".into());
    let reader = reader.spawn(move || process_events(&read, &reads)).unwrap();
    is_read.wait();
    let writer = thread::Builder::new().name("syncer".into());
    let writer = writer.spawn(move || apply_block(&written)).unwrap();
    println!("ready");
    println!("{}", reader.join().unwrap());
    writer.join().unwrap();
}
