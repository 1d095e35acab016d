// Threads of a JVM add up under a monitor, a lock of java.util.concurrent and a queue. Prints the
// sums.
import java.util.concurrent.*;
import java.util.concurrent.locks.*;

public class JavaThreadsAddUp {
    static final int THREADS = 6, ROUNDS = 30000;
    static long monitored, locked, queued;
    static final Object monitor = new Object();
    static final ReentrantLock lock = new ReentrantLock();

    static void add(int number) {
        for (int round = 0; round < ROUNDS; round++) {
            synchronized (monitor) {
                monitored += round;
            }
            lock.lock();
            try {
                locked += number;
            } finally {
                lock.unlock();
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        BlockingQueue<Integer> queue = new ArrayBlockingQueue<>(8);
        ExecutorService pool = Executors.newFixedThreadPool(THREADS + 1);
        Future<?> consumer = pool.submit(() -> {
            for (int taken = 0; taken < ROUNDS; taken++)
                queued += queue.take();
            return null;
        });
        Future<?>[] adders = new Future<?>[THREADS];
        for (int i = 0; i < THREADS; i++) {
            int number = i;
            adders[i] = pool.submit(() -> add(number));
        }
        for (int round = 0; round < ROUNDS; round++)
            queue.put(round);
        for (Future<?> adder : adders)
            adder.get();
        consumer.get();
        pool.shutdown();
        System.out.println(monitored + " " + locked + " " + queued);
    }
}
