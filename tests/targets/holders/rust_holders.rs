//! Holders of Rust locks that name no holder, one behaviour a scenario: rust_holders SCENARIO.
//!
//! Locks are those of std, or with --cfg parking_lot those of parking_lot. Says
//! {"waiters": {tid: [tids of the holders]}} when all waiters sleep, and ends with its stdin.
#![allow(unused_variables, clippy::all)]

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering::SeqCst};
use std::sync::{mpsc, Arc};
use std::thread;
use std::time::{Duration, Instant};

#[cfg(not(parking_lot))]
mod locks {
    pub use std::sync::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
    pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap()
    }
    pub fn read<T: ?Sized>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
        lock.read().unwrap()
    }
    pub fn write<T: ?Sized>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
        lock.write().unwrap()
    }
    pub fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        condition.wait(guard).unwrap()
    }
}
#[cfg(parking_lot)]
mod locks {
    pub use parking_lot::{
        Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard,
    };
    pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock()
    }
    pub fn read<T: ?Sized>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
        lock.read()
    }
    pub fn write<T: ?Sized>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
        lock.write()
    }
    pub fn wait<'a, T>(condition: &Condvar, mut guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        condition.wait(&mut guard);
        guard
    }
}
use locks::{lock, read, wait, write, Condvar, Mutex, MutexGuard, RwLock};

extern "C" {
    fn gettid() -> i32;
    fn pipe(ends: *mut i32) -> i32;
    #[link_name = "read"]
    fn sys_read(fd: i32, buffer: *mut u8, size: usize) -> isize;
}

// ---- what every scenario uses ----

const MAX: usize = 64;
struct Tids(AtomicUsize, [AtomicI32; MAX]);

impl Tids {
    const fn new() -> Tids {
        const NOBODY: AtomicI32 = AtomicI32::new(0);
        Tids(AtomicUsize::new(0), [NOBODY; MAX])
    }
    fn add(&self) {
        self.1[self.0.fetch_add(1, SeqCst)].store(unsafe { gettid() }, SeqCst);
    }
    /// Waits for `count` threads; returns their tids.
    fn all(&self, count: usize) -> Vec<i32> {
        let have = || self.1.iter().filter(|tid| tid.load(SeqCst) != 0).count();
        while have() < count {
            thread::sleep(Duration::from_millis(1));
        }
        self.1[..count].iter().map(|tid| tid.load(SeqCst)).collect()
    }
}

static HOLDERS: Tids = Tids::new();
static ONLOOKERS: Tids = Tids::new();
static WAITERS: Tids = Tids::new();

/// Sleeps in read() for ever.
#[inline(never)]
fn sleep_for_ever() {
    let mut ends = [0; 2];
    let mut byte = 0;
    unsafe {
        pipe(ends.as_mut_ptr());
        sys_read(ends[0], &mut byte, 1);
    }
}

/// Called with the lock held.
fn hold() {
    HOLDERS.add();
    sleep_for_ever();
}

/// Called without the lock.
fn sleep_without_lock() {
    ONLOOKERS.add();
    sleep_for_ever();
}

fn start(run: impl FnOnce() + Send + 'static) {
    thread::spawn(run);
}

fn start_waiter(run: impl FnOnce() + Send + 'static) {
    let before = WAITERS.0.load(SeqCst);
    start(move || {
        WAITERS.add();
        run();
        println!("a waiter got the lock");
    });
    WAITERS.all(before + 1);
}

/// Says that all waiters wait for all holders, and waits for the end of stdin.
fn say(holders: &[i32]) {
    let waiters = WAITERS.all(WAITERS.0.load(SeqCst));
    say_all(&waiters.iter().map(|tid| (*tid, holders.to_vec())).collect::<Vec<_>>());
}

fn await_call(tid: i32, is_so: impl Fn(&str) -> bool) {
    let path = format!("/proc/self/task/{tid}/syscall");
    while !is_so(&std::fs::read_to_string(&path).unwrap()) {
        thread::sleep(Duration::from_millis(1));
    }
}

fn say_all(truth: &[(i32, Vec<i32>)]) {
    for (waiter, holders) in truth {
        await_call(*waiter, |call| call.starts_with("202 "));
        holders.iter().for_each(|holder| await_call(*holder, |call| !call.starts_with("running")));
    }
    let parts: Vec<_> = truth.iter().map(|(tid, of)| format!("\"{tid}\": {of:?}")).collect();
    println!("{{\"waiters\": {{{}}}}}", parts.join(", "));
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    std::process::exit(0);
}

type Shared = Arc<Mutex<u64>>;

fn shared() -> Shared {
    Arc::new(Mutex::new(1))
}

/// Runs a holder of a mutex, two that look on, and a waiter.
fn usual(holder: impl FnOnce(Shared) + Send + 'static) {
    let mutex = shared();
    let of_holder = mutex.clone();
    start(move || holder(of_holder));
    let holders = HOLDERS.all(1);
    start_onlookers(&mutex, 2);
    wait_for(&mutex);
    say(&holders);
}

/// Starts threads that have a reference to the mutex, sleep, and would take it afterwards.
fn start_onlookers(mutex: &Shared, count: usize) {
    let before = ONLOOKERS.0.load(SeqCst);
    for _ in 0..count {
        let mutex = mutex.clone();
        start(move || {
            sleep_without_lock();
            *lock(&mutex) += 1;
        });
    }
    ONLOOKERS.all(before + count);
}

fn wait_for(mutex: &Shared) {
    let mutex = mutex.clone();
    start_waiter(move || *lock(&mutex) += 1);
}

// ---- the scenarios ----

fn plain() {
    usual(|mutex| {
        let mut guard = lock(&mutex);
        hold();
        *guard += 1;
    });
}

#[inline(never)]
fn deeper(depth: usize, text: &str) -> usize {
    if depth == 0 {
        hold();
        return text.len();
    }
    deeper(depth - 1, text) + 1
}

fn deep_in_calls() {
    usual(|mutex| {
        let guard = lock(&mutex);
        println!("{}", deeper(12, "text"));
    });
}

#[inline(never)]
fn with_lock<R>(mutex: &Mutex<u64>, work: impl FnOnce(&mut u64) -> R) -> R {
    let mut guard = lock(mutex);
    work(&mut guard)
}

fn in_closure() {
    usual(|mutex| {
        let sum = with_lock(&mutex, |value| {
            hold();
            *value += 1;
            *value
        });
        println!("{sum}");
    });
}

trait Work {
    fn work(&mut self) -> u64;
}

struct Worker<'a> {
    name: String,
    guard: MutexGuard<'a, u64>,
}

impl Work for Worker<'_> {
    #[inline(never)]
    fn work(&mut self) -> u64 {
        hold();
        *self.guard += self.name.len() as u64;
        *self.guard
    }
}

#[inline(never)]
fn worker<'a>(mutex: &'a Mutex<u64>) -> Box<dyn Work + 'a> {
    Box::new(Worker { name: "worker".to_string(), guard: lock(mutex) })
}

fn behind_trait_object() {
    usual(|mutex| {
        let mut worker = worker(&mutex);
        println!("{}", worker.work());
    });
}

fn guard_in_struct() {
    usual(|mutex| {
        let mut session = Worker { name: "session".to_string(), guard: lock(&mutex) };
        session.work();
    });
}

/// Measures the hold: the clock's difference calls itself if the clock went back.
fn holder_measures_time() {
    usual(|mutex| {
        let mut guard = lock(&mutex);
        let begin = Instant::now();
        hold();
        *guard += begin.elapsed().as_nanos() as u64;
    });
}

fn guard_in_box() {
    usual(|mutex| {
        let guard = Box::new(lock(&mutex));
        hold();
        println!("{}", **guard);
    });
}

struct Sendable<T>(T);
unsafe impl<T> Send for Sendable<T> {}

fn guard_moved_to_thread() {
    let mutex: &'static Mutex<u64> = Box::leak(Box::new(Mutex::new(1)));
    start(move || {
        let guard = Sendable(lock(mutex));
        start(move || {
            let guard = guard;
            hold();
            println!("{}", *guard.0);
        });
        sleep_without_lock();
        *lock(mutex) += 1;
    });
    let holders = HOLDERS.all(1);
    ONLOOKERS.all(1);
    start_waiter(move || *lock(mutex) += 1);
    say(&holders);
}

#[inline(never)]
fn opened(mutex: &Mutex<u64>) -> Result<MutexGuard<'_, u64>, String> {
    let guard = lock(mutex);
    if *guard == 77 { Err("closed".to_string()) } else { Ok(guard) }
}

fn guard_returned() {
    usual(|mutex| match opened(&mutex) {
        Ok(mut guard) => {
            hold();
            *guard += 1;
        }
        Err(text) => println!("{text}"),
    });
}

static GLOBAL: Mutex<Vec<u64>> = Mutex::new(Vec::new());


fn static_lock() {
    start(|| {
        let mut list = lock(&GLOBAL);
        hold();
        list.push(1);
    });
    let holders = HOLDERS.all(1);
    for _ in 0..2 {
        start(|| {
            sleep_without_lock();
            lock(&GLOBAL).push(2);
        });
    }
    ONLOOKERS.all(2);
    start_waiter(|| lock(&GLOBAL).push(3));
    say(&holders);
}

#[repr(C)]
struct Server {
    jobs: Mutex<Vec<u64>>,
    name: String,
    clients: Mutex<u64>,
}

impl Server {
    #[inline(never)]
    fn serve(&self) -> usize {
        let jobs = lock(&self.jobs);
        self.pause();
        jobs.len()
    }
    #[inline(never)]
    fn pause(&self) {
        hold();
    }
    #[inline(never)]
    fn accept(&self) -> usize {
        let clients = lock(&self.clients);
        sleep_without_lock();
        self.name.len()
    }
    #[inline(never)]
    fn count(&self) -> usize {
        sleep_without_lock();
        lock(&self.jobs).len()
    }
}

fn first_field_of_shared_struct() {
    let server = Arc::new(Server {
        jobs: Mutex::new(vec![1]),
        name: "server".to_string(),
        clients: Mutex::new(0),
    });
    let of_holder = server.clone();
    start(move || println!("{}", of_holder.serve()));
    let holders = HOLDERS.all(1);
    let (accepts, counts) = (server.clone(), server.clone());
    start(move || println!("{}", accepts.accept()));
    start(move || println!("{}", counts.count()));
    ONLOOKERS.all(2);
    start_waiter(move || lock(&server.jobs).push(2));
    say(&holders);
}

fn one_of_many_locks() {
    let locks: Arc<Vec<Mutex<u64>>> = Arc::new((0..8).map(Mutex::new).collect());
    for index in 0..8 {
        let locks = locks.clone();
        start(move || {
            let guard = lock(&locks[index]);
            if index == 3 { hold() } else { sleep_without_lock() }
            println!("{}", *guard);
        });
    }
    let holders = HOLDERS.all(1);
    ONLOOKERS.all(7);
    start_waiter(move || *lock(&locks[3]) += 1);
    say(&holders);
}

/// The guard is dropped on some ways and not on others: the compiler keeps a flag.
fn guard_with_drop_flag() {
    let is_early = std::env::args().count() > 5;
    usual(move |mutex| {
        let guard = lock(&mutex);
        if is_early {
            drop(guard);
            sleep_without_lock();
        } else {
            hold();
            let moved = guard;
            println!("{}", *moved);
        }
    });
}

/// The onlooker has dropped its guard early; the flag tells that it has.
fn onlooker_with_drop_flag() {
    let is_early = std::env::args().count() < 5;
    let mutex = shared();
    let (of_holder, early) = (mutex.clone(), mutex.clone());
    start(move || {
        let mut guard = Some(lock(&early));
        if is_early {
            guard = None;
        }
        sleep_without_lock();
        println!("{:?}", guard.is_some());
    });
    ONLOOKERS.all(1);
    start(move || {
        let guard = lock(&of_holder);
        hold();
        println!("{}", *guard);
    });
    let holders = HOLDERS.all(1);
    wait_for(&mutex);
    say(&holders);
}

/// Onlookers used the mutex before, in the frames in which they sleep now.
fn onlookers_that_used_it() {
    let mutex = shared();
    for _ in 0..6 {
        let mutex = mutex.clone();
        start(move || loop {
            {
                let mut guard = lock(&mutex);
                *guard += deeper_sum(&guard, 5);
            }
            sleep_without_lock();
        });
    }
    ONLOOKERS.all(6);
    let of_holder = mutex.clone();
    start(move || loop {
        let mut guard = lock(&of_holder);
        *guard += 1;
        hold();
    });
    let holders = HOLDERS.all(1);
    wait_for(&mutex);
    say(&holders);
}

#[inline(never)]
fn deeper_sum(guard: &MutexGuard<u64>, depth: u64) -> u64 {
    if depth == 0 { **guard } else { deeper_sum(guard, depth - 1) + depth }
}

/// One worker of the pool sleeps for work with the mutex of the queue held; the others wait for it.
fn pool_receives_under_lock() {
    let (_jobs, receiver) = mpsc::channel::<u64>();
    let receiver = Arc::new(Mutex::new(receiver));
    let of_holder = receiver.clone();
    start(move || loop {
        let queue = lock(&of_holder);
        HOLDERS.add();
        let job = queue.recv().unwrap();
        drop(queue);
        println!("{job}");
    });
    let holders = HOLDERS.all(1);
    for _ in 0..4 {
        let receiver = receiver.clone();
        start_waiter(move || loop {
            let job = lock(&receiver).recv().unwrap();
            println!("{job}");
        });
    }
    say(&holders);
}

/// The holder sleeps at a condition variable with another mutex.
fn holder_at_condition() {
    usual(|mutex| {
        let guard = lock(&mutex);
        let (other, condition) = (Mutex::new(false), Condvar::new());
        let mut is_ready = lock(&other);
        HOLDERS.add();
        while !*is_ready {
            is_ready = wait(&condition, is_ready);
        }
        println!("{}", *guard);
    });
}

/// Threads sleep at a condition variable of the mutex: they do not hold it.
fn onlookers_at_condition() {
    let pair = Arc::new((Mutex::new(0), Condvar::new()));
    for _ in 0..4 {
        let pair = pair.clone();
        start(move || {
            let mut value = lock(&pair.0);
            ONLOOKERS.add();
            while *value == 0 {
                value = wait(&pair.1, value);
            }
        });
    }
    ONLOOKERS.all(4);
    let of_holder = pair.clone();
    start(move || {
        let mut guard = lock(&of_holder.0);
        hold();
        *guard += 1;
    });
    let holders = HOLDERS.all(1);
    start_waiter(move || *lock(&pair.0) += 1);
    say(&holders);
}

fn readers_hold() {
    let data = Arc::new(RwLock::new(HashMap::<u64, u64>::new()));
    for _ in 0..3 {
        let data = data.clone();
        start(move || {
            let map = read(&data);
            hold();
            println!("{}", map.len());
        });
    }
    let holders = HOLDERS.all(3);
    let used = data.clone();
    start(move || {
        let length = read(&used).len();
        unsafe { std::ptr::read_volatile(&length) };
        sleep_without_lock();
        println!("{}", read(&used).len());
    });
    ONLOOKERS.all(1);
    start_waiter(move || {
        write(&data).insert(1, 2);
    });
    say(&holders);
}

fn writer_holds() {
    let data = Arc::new(RwLock::new(HashMap::<u64, u64>::new()));
    let of_holder = data.clone();
    start(move || {
        let mut map = write(&of_holder);
        hold();
        map.insert(1, 2);
    });
    let holders = HOLDERS.all(1);
    for _ in 0..2 {
        let data = data.clone();
        start(move || {
            sleep_without_lock();
            write(&data).insert(1, 3);
        });
    }
    ONLOOKERS.all(2);
    for _ in 0..2 {
        let data = data.clone();
        start_waiter(move || println!("{}", read(&data).len()));
    }
    start_waiter(move || {
        write(&data).insert(2, 2);
    });
    say(&holders);
}

fn holder_in_nanosleep() {
    usual(|mutex| {
        let mut guard = lock(&mutex);
        HOLDERS.add();
        thread::sleep(Duration::from_secs(3600));
        *guard += 1;
    });
}

/// The holder waits for a second lock, which another thread has.
fn holder_waits_for_other_lock() {
    let (first, second) = (shared(), shared());
    let of_second = second.clone();
    start(move || {
        let mut guard = lock(&of_second);
        hold();
        *guard += 1;
    });
    let of_second = HOLDERS.all(1);
    let both = (first.clone(), second.clone());
    start_waiter(move || {
        let one = lock(&both.0);
        HOLDERS.add();
        let mut two = lock(&both.1);
        *two += *one;
    });
    let of_first = vec![HOLDERS.all(2)[1]];
    wait_for(&first);
    let waiters = WAITERS.all(2);
    say_all(&[(waiters[0], of_second), (waiters[1], of_first)]);
}

/// Threads used an earlier mutex at the same address and sleep in the same frames.
fn recycled_address() {
    let memory: &'static mut MaybeUninit<Mutex<u64>> = Box::leak(Box::new(MaybeUninit::uninit()));
    let address = Sendable(memory.as_mut_ptr());
    let address = address.0 as usize;
    unsafe { (address as *mut Mutex<u64>).write(Mutex::new(1)) };
    for _ in 0..4 {
        start(move || {
            let earlier = unsafe { &*(address as *const Mutex<u64>) };
            *lock(earlier) += 1;
            sleep_without_lock();
        });
    }
    ONLOOKERS.all(4);
    unsafe { (address as *mut Mutex<u64>).write(Mutex::new(2)) };
    let mutex = unsafe { &*(address as *const Mutex<u64>) };
    start(move || {
        let guard = lock(mutex);
        hold();
        println!("{}", *guard);
    });
    let holders = HOLDERS.all(1);
    start_waiter(move || *lock(mutex) += 1);
    say(&holders);
}

fn holder_in_scope() {
    let mutex = Mutex::new(1);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut guard = lock(&mutex);
            hold();
            *guard += 1;
        });
        let holders = HOLDERS.all(1);
        scope.spawn(|| {
            WAITERS.add();
            *lock(&mutex) += 1;
        });
        WAITERS.all(1);
        start(move || say(&holders));
    });
}

fn holder_catches_panics() {
    usual(|mutex| {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut guard = lock(&mutex);
            hold();
            *guard += 1;
            if *guard == 5 {
                panic!("five");
            }
        }));
        println!("{}", result.is_ok());
    });
}

/// All locks of a table are held, with their guards in a vector.
fn guards_in_vector() {
    let locks: Arc<Vec<Mutex<u64>>> = Arc::new((0..8).map(Mutex::new).collect());
    let of_holder = locks.clone();
    start(move || {
        let guards: Vec<_> = of_holder.iter().map(lock).collect();
        hold();
        println!("{}", guards.len());
    });
    let holders = HOLDERS.all(1);
    for index in 0..3 {
        let locks = locks.clone();
        start(move || {
            sleep_without_lock();
            *lock(&locks[index]) += 1;
        });
    }
    ONLOOKERS.all(3);
    start_waiter(move || *lock(&locks[5]) += 1);
    say(&holders);
}

/// The holder unlocks by hand, after a match with many arms.
fn dropped_by_hand() {
    let choice = std::env::args().count() as u64;
    usual(move |mutex| {
        let mut guard = lock(&mutex);
        hold();
        let text = match *guard + choice {
            3 => "three".to_string(),
            4 => format!("{}", choice),
            5 => "five".repeat(choice as usize),
            6 => String::new(),
            7 => choice.to_string(),
            _ => "many".to_string(),
        };
        *guard += text.len() as u64;
        drop(guard);
        println!("{text}");
        *lock(&mutex) += 1;
    });
}

// ---- deadlocks ----

fn cross(count: usize) {
    let locks: Arc<Vec<Mutex<u64>>> = Arc::new((0..count as u64).map(Mutex::new).collect());
    for index in 0..count {
        let locks = locks.clone();
        start_waiter(move || {
            let mut first = lock(&locks[index]);
            HOLDERS.add();
            HOLDERS.all(locks.len());
            *first += *lock(&locks[(index + 1) % locks.len()]);
        });
    }
    HOLDERS.all(count);
    let waiters = WAITERS.all(count);
    let next = |index: usize| vec![waiters[(index + 1) % count]];
    say_all(&(0..count).map(|index| (waiters[index], next(index))).collect::<Vec<_>>());
}

fn deadlock_of_two() {
    cross(2);
}

fn deadlock_of_three() {
    cross(3);
}

macro_rules! scenarios {
    ($($name:ident),* $(,)?) => { &[$((stringify!($name), $name as fn())),*] };
}

const SCENARIOS: &[(&str, fn())] = scenarios![
    plain,
    deep_in_calls,
    in_closure,
    behind_trait_object,
    guard_in_struct,
    holder_measures_time,
    guard_in_box,
    guard_moved_to_thread,
    guard_returned,
    static_lock,
    first_field_of_shared_struct,
    one_of_many_locks,
    guard_with_drop_flag,
    onlooker_with_drop_flag,
    onlookers_that_used_it,
    pool_receives_under_lock,
    holder_at_condition,
    onlookers_at_condition,
    readers_hold,
    writer_holds,
    holder_in_nanosleep,
    holder_waits_for_other_lock,
    recycled_address,
    holder_in_scope,
    holder_catches_panics,
    guards_in_vector,
    dropped_by_hand,
    deadlock_of_two,
    deadlock_of_three,
];

fn main() {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    match SCENARIOS.iter().find(|(name, _)| *name == wanted) {
        Some((_, run)) => run(),
        None => {
            for (name, _) in SCENARIOS {
                println!("{name}");
            }
        }
    }
}
