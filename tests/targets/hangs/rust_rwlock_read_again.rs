// A thread reads a RwLock, and reads it again. A writer came between.
use std::sync::{mpsc, Arc, RwLock};
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
fn process_events(ledger: &RwLock<Ledger>, writer_comes: mpsc::Receiver<()>) -> u64 {
    let guard = ledger.read().unwrap();
    writer_comes.recv().unwrap();
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
    let (comes, writer_comes) = mpsc::channel();
    let (read, written) = (ledger.clone(), ledger.clone());
    let reader = thread::Builder::new().name("poller".into());
    let reader = reader.spawn(move || process_events(&read, writer_comes)).unwrap();
    comes.send(()).unwrap();
    let writer = thread::Builder::new().name("syncer".into());
    let writer = writer.spawn(move || apply_block(&written)).unwrap();
    println!("ready");
    println!("{}", reader.join().unwrap());
    writer.join().unwrap();
}
