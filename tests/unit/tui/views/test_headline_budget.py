"""A headline of any names keeps the holder, what it does and the line, in 80 columns."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace
from rich.cells import cell_len
from unit.builders import blocking, records, scenarios

from locktop.collector.model import (
    ActivityState,
    Held,
    Pattern,
    PatternName,
    Snapshot,
    ThreadActivity,
    ThreadState,
)
from locktop.collector.model.kinds import Kind
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.views.banner import banner
from locktop.tui.views.headline import headline
from locktop.tui.views.styled_line import line_text

#: By lock: the holder, the function where it took the lock, what it does.
NAMES = (
    # C
    ("g_cache_lock", "worker-3", "cache_put", "fsync"),
    ("subsystem_registry_global_configuration_lock", "config-reloader", "reload", "read"),
    ("mutex 0x7fe8fcff61c0", "8720", "ngx_http_upstream_process_header", "recvfrom"),
    ("libplugin.so.4: g_table[1187].bucket_lock", "plugin-io", "plugin_entry", "openat"),
    ("mutex made in log_open (logging.c:412)", "logger", "log_rotate_and_compress", "rename"),
    ("buf_pool.mutex at 0x55d000001040", "ib_io_rd-1", "buf_page_get_gen", "pread64"),
    ("LOCK_open", "mariadbd:19233", "open_table_get_mdl_lock", "fdatasync"),
    ("mutex in ngx_shmtx_lock (ngx_shmtx.c:75)", "nginx", "ngx_shmtx_lock", "semop"),
    # C++
    ("rocksdb::WriteThread::BlockingAwaitState", "8720", "", "fdatasync"),
    ("std::map<std::string, std::shared_ptr<Session>>::mu at 0x7ffe12345678", "http-12",
     "http::Server<http::Policy<std::string>>::dispatch(http::Request const&)", "epoll_wait"),
    ("mutex in leveldb::(anonymous namespace)::PosixEnv::BackgroundThreadMain (env_posix.cc:788)",
     "leveldb:bg", "leveldb::(anonymous namespace)::PosixEnv::BackgroundThreadMain", "fdatasync"),
    ("boost::asio::detail::scheduler<boost::asio::executor>::mutex_", "asio-worker-15",
     "boost::asio::detail::epoll_reactor::run(long, op_queue<operation>&)", "epoll_wait"),
    ("absl::Mutex in grpc_core::(anonymous namespace)::ChannelData::StartTransport (channel.cc:9)",
     "grpc_global_tim", "grpc_core::ChannelData::StartTransport(grpc_op*)", "sendmsg"),
    ("mutex in operator()<std::vector<int>> (pool.hpp:31)", "pool-7", "Pool::run()::{lambda()#1}",
     "clock_nanosleep"),
    ("folly::SharedMutexImpl<false, void, std::atomic, false>::state_", "IOThreadPool0",
     "folly::fibers::FiberManager::runReadyFiber(folly::fibers::Fiber*)", "madvise"),
    ("mysql::MDL_map_partition<MDL_lock, MDL_key>::m_mutex[3]", "connection:90211",
     "MDL_context::acquire_lock", "ppoll"),
    ("index_[abi:cxx11]", "loader", "index_[abi:cxx11]", "read"),
    # Rust
    ("Rust Mutex in _25_two_rust_locks::charge_account (25-two-rust-locks.rs:3)", "pay-2",
     "_25_two_rust_locks::charge_account", "clock_nanosleep"),
    ("<app::Cache<K, V> as app::Store>::LOCK", "tokio-runtime-w",
     "<app::Cache<K, V> as app::Store>::insert", "write"),
    ("parking_lot RwLock in hyper::proto::h1::dispatch::Dispatcher<D, Bs, I, T>::poll_loop "
     "(dispatch.rs:163)", "tokio-runtime-w", "hyper::proto::h1::dispatch::poll_loop", "sendto"),
    ("alloc::sync::Arc<std::sync::Mutex<std::collections::HashMap<u64, Vec<u8>>>>", "actix-rt|s:0",
     "core::ops::function::FnOnce::call_once{{vtable.shim}}", "futex"),
    ("Rust Mutex<Journal>", "flusher", "rust_journal::flush", "recvfrom"),
    ("Rust Mutex in app::main::{{closure}} (main.rs:7)", "pay-1", "app::main::{{closure}}", "read"),
    # Python
    ("Lock in submit_order (orders_service.py:29)", "Thread-1 (charge_order)",
     "ask_payment_provider", "recvfrom"),
    ("RLock made in __init__ (django/core/cache/backends/locmem.py:27)", "ThreadPoolExecutor-0_11",
     "_set", "sendto"),
    ("_PyRuntime.ceval.gil.mutex", "MainThread", "take_gil", "futex"),
    ("Condition in get (queue.py:180)", "Dummy-4", "process_request_thread", "select"),
    # JIT, Java, Go
    ("Monitor java/util/concurrent/ConcurrentHashMap$Node", "http-nio-8080-e",
     "Lcom/acme/orders/OrderService;::placeOrder(Lcom/acme/Order;)V", "epoll_wait"),
    ("mutex in LazyCompile:*handleRequest /srv/app/node_modules/express/lib/router/index.js:136",
     "node:9121", "LazyCompile:*handleRequest /srv/app/router/index.js", "epoll_pwait"),
    ("futex in runtime.(*mheap).alloc.func1 (mheap.go:958)", "api-server:77812",
     "runtime.(*mheap).alloc.func1", "madvise"),
    ("線程安全佇列之互斥鎖於資料庫連線池管理器內", "資料庫", "連線池管理器之取得連線", "read"),
)  # fmt: skip
LOCK = blocking.INDEX
LINE = 2107


def snapshot(lock: str, holder: str, function: str, call: str, chained: bool = False) -> Snapshot:
    """Return a crowd at a lock whose holder sleeps in a call; with a crowd behind it if chained."""
    made = blocking.pool_behind_index(20 if chained else 0)
    if function:
        frame = records.frame(function, "x.cc", LINE)
    else:
        frame = replace(records.SITES[0x401400], module="db_bench", offset=0x1F)
    threads = tuple(
        replace(thread, name=holder) if thread.tid == blocking.HOLDER else thread
        for thread in made.threads
    )
    now = replace(made.locks[1].holder_activity, call=call, what=f"{call}(7 -> /var/lib/x/y.log)")
    locks = (made.locks[0], replace(made.locks[1], name=lock, holder_activity=now))
    return replace(made, threads=threads, locks=locks, sites={**made.sites, 0x401300: frame})


@pytest.mark.parametrize("names", NAMES, ids=lambda names: names[0][:30])
@pytest.mark.parametrize("chained", [False, True], ids=["crowd", "chain"])
def test_holder_activity_and_line_are_never_cut_in_80_columns(
    names: tuple[str, str, str, str], chained: bool
) -> None:
    lock, holder, function, call = names
    index = SnapshotIndex(snapshot(*names, chained=chained))
    text = line_text(headline(index, 80))
    assert cell_len(text) <= 80
    assert f" {holder}" in text
    assert text.endswith(f"in {call}")
    assert (f":{LINE}," if function else "db_bench+0x1f") in text
    whole = line_text(headline(index, 400))
    assert lock in whole
    assert f"now in {call}(7 -> /var/lib/x/y.log)" in whole
    for width in range(20, 80):
        assert cell_len(line_text(headline(index, width))) <= width


@pytest.mark.parametrize("names", NAMES, ids=lambda names: names[0][:30])
def test_a_narrow_headline_begins_with_the_lock_and_its_waiters(
    names: tuple[str, str, str, str],
) -> None:
    index = SnapshotIndex(snapshot(*names))
    at_60, at_40 = (line_text(headline(index, width)) for width in (60, 40))
    assert names[1] in at_60
    for text in (at_60, at_40):
        name, colon, rest = text.rpartition(": 8 wait")
        assert colon
        assert rest
        assert cell_len(name) >= 6 or not name.startswith(" …")
        assert "……" not in text


@pytest.mark.parametrize("names", NAMES, ids=lambda names: names[0][:30])
def test_a_running_holder_has_the_line_where_it_runs(names: tuple[str, str, str, str]) -> None:
    _, holder, function, _ = names
    made = snapshot(*names)
    now = ThreadActivity(blocking.HOLDER, ActivityState.RUNNING, stack=7)
    runs = records.frame(function or "f", "x.cc", 4711)
    index = SnapshotIndex(
        replace(
            made,
            locks=(made.locks[0], replace(made.locks[1], holder_activity=now)),
            stacks={**made.stacks, 7: (runs,)},
        )
    )
    text = line_text(headline(index, 80))
    assert cell_len(text) <= 80
    assert f" {holder}" in text
    assert "runs " in text
    assert text.endswith(":4711")


@pytest.mark.parametrize("names", NAMES, ids=lambda names: names[0][:30])
def test_a_pattern_keeps_its_word_and_first_figures(names: tuple[str, str, str, str]) -> None:
    calm = scenarios.normal()
    threads = tuple(replace(thread, waiting_for=None) for thread in calm.threads)
    pattern = Pattern(PatternName.CONVOY, 1, (), "8 threads wait; 91 % had to; 3 s", "")
    locks = tuple(replace(lock, name=names[0]) if lock.id == 1 else lock for lock in calm.locks)
    index = SnapshotIndex(replace(calm, threads=threads, locks=locks, patterns=(pattern,)))
    for width in (60, 80):
        text = line_text(headline(index, width))
        assert cell_len(text) <= width
        assert " (convoy): 8 threads wait" in text
    assert " (convoy): 8" in line_text(headline(index, 40))


@pytest.mark.parametrize("names", NAMES, ids=lambda names: names[0][:30])
def test_a_deadlock_keeps_thread_holder_and_the_line_of_the_wait(
    names: tuple[str, str, str, str],
) -> None:
    lock, _, function, _ = names
    stuck = scenarios.deadlock()
    locks = tuple(replace(each, name=lock) for each in stuck.locks)
    sites = {address: records.frame(function or "f", "x.cc", 31) for address in stuck.sites}
    index = SnapshotIndex(replace(stuck, locks=locks, sites=sites))
    for line in banner(index, 5, 80)[1:]:
        text = line_text(line)
        assert cell_len(text) <= 80
        assert text.count("philosopher-") == 2
        assert ":36" in text
        assert " of philosopher-" in text
        assert not re.search(r"\w…\w", text)
    for width in (40, 60):
        for line in banner(index, 5, width):
            assert cell_len(line_text(line)) <= width


@pytest.mark.parametrize("names", NAMES, ids=lambda names: names[0][:30])
def test_no_pattern_is_cut_at_both_ends(names: tuple[str, str, str, str]) -> None:
    calm = scenarios.normal()
    threads = tuple(replace(thread, waiting_for=None) for thread in calm.threads)
    evidence = "8 threads wait, 91 % of the acquisitions had to wait, and the holds last 3 us"
    pattern = Pattern(PatternName.CONVOY, 1, (), evidence, "")
    locks = tuple(replace(lock, name=names[0]) if lock.id == 1 else lock for lock in calm.locks)
    index = SnapshotIndex(replace(calm, threads=threads, locks=locks, patterns=(pattern,)))
    for width in (60, 80):
        text = line_text(headline(index, width)).strip()
        assert " (convoy): 8 threads wait" in text
        assert text.count("…") <= 1


def test_a_sampled_holder_has_the_line_where_it_sleeps() -> None:
    """Samples do not show where a thread took a lock."""
    made = snapshot("rocksdb::WriteThread::BlockingAwaitState", "8720", "", "fdatasync")
    libc = replace(records.STACKS[1][-1], function="fdatasync")
    own = replace(records.SITES[0x401400], module="db_bench", offset=0x1F)
    now = replace(made.locks[1].holder_activity, stack=7)
    threads = tuple(
        replace(thread, holds=(Held(LOCK, 0, None),)) if thread.name == "8720" else thread
        for thread in made.threads
    )
    index = SnapshotIndex(
        replace(
            made,
            threads=threads,
            locks=(made.locks[0], replace(made.locks[1], holder_activity=now)),
            stacks={**made.stacks, 7: (libc, own)},
        )
    )
    assert line_text(headline(index, 80)) == (
        " …BlockingAwaitState: 8 wait 12.0s; held by 8720, in fdatasync at db_bench+0x1f"
    )


def test_the_wait_of_the_holder_stays() -> None:
    made = snapshot(NAMES[8][0], "loader", "load", "read")
    slots = records.lock(77, "connection_pool_slots", Kind.SEM)
    waits = records.wait(77, Kind.SEM, 1.5)
    threads = tuple(
        replace(thread, waiting_for=waits, state=ThreadState.IDLE)
        if thread.tid == blocking.HOLDER
        else thread
        for thread in made.threads
    )
    index = SnapshotIndex(replace(made, threads=threads, locks=(*made.locks, slots)))
    text = line_text(headline(index, 80))
    assert cell_len(text) <= 80
    assert text.endswith(f" at load:{LINE}, waits for connection_pool_slots")
