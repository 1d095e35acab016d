// Workers of Node.js add up in shared memory under a lock of Atomics. Prints the sum.
const { Worker, isMainThread, workerData } = require('node:worker_threads');

const THREADS = 4, ROUNDS = 20000, LOCK = 0, SUM = 1;

function add(shared) {
    for (let round = 0; round < ROUNDS; round++) {
        while (Atomics.exchange(shared, LOCK, 1))
            Atomics.wait(shared, LOCK, 1);
        shared[SUM] += 1;
        Atomics.store(shared, LOCK, 0);
        Atomics.notify(shared, LOCK, 1);
    }
}

if (isMainThread) {
    const shared = new Int32Array(new SharedArrayBuffer(8));
    let left = THREADS;
    for (let i = 0; i < THREADS; i++)
        new Worker(__filename, { workerData: shared }).on('exit', () => {
            if (--left === 0)
                console.log(shared[SUM]);
        });
} else {
    add(workerData);
}
