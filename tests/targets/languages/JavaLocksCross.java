import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

// Two threads cross on monitors, two threads cross on locks, and one thread is parked. Two more
// threads add up all the while under one monitor. Says "ready" when all that must wait do wait. At
// a line the adding threads stop, and the program says the count of each thread and the sum.
public class JavaLocksCross {
    static final Object one = new Object(), other = new Object(), adding = new Object();
    static final ReentrantLock oneLock = new ReentrantLock(), otherLock = new ReentrantLock();
    static long sum;
    static volatile boolean over;

    static void meet(CyclicBarrier barrier) {
        try {
            barrier.await();
        } catch (Exception e) {
            throw new AssertionError(e);
        }
    }

    static Thread started(String name, Runnable work) {
        Thread thread = new Thread(work, name);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    static Runnable monitors(Object first, Object second, CyclicBarrier both) {
        return () -> {
            synchronized (first) {
                meet(both);
                synchronized (second) { }
            }
        };
    }

    static Runnable locks(ReentrantLock first, ReentrantLock second, CyclicBarrier both) {
        return () -> {
            first.lock();
            meet(both);
            second.lock();
        };
    }

    static void awaitState(Thread thread, Thread.State state) throws Exception {
        while (thread.getState() != state)
            Thread.sleep(5);
    }

    public static void main(String[] arguments) throws Exception {
        CyclicBarrier monitors = new CyclicBarrier(2), locks = new CyclicBarrier(2);
        Thread[] blocked = {started("monitor-1", monitors(one, other, monitors)),
                            started("monitor-2", monitors(other, one, monitors))};
        Thread[] waiting = {started("lock-1", locks(oneLock, otherLock, locks)),
                            started("lock-2", locks(otherLock, oneLock, locks)),
                            started("parked", () -> { while (true) LockSupport.park(); })};
        for (Thread thread : blocked)
            awaitState(thread, Thread.State.BLOCKED);
        for (Thread thread : waiting)
            awaitState(thread, Thread.State.WAITING);
        long[] added = new long[2];
        Thread[] adders = new Thread[2];
        for (int i = 0; i < adders.length; i++) {
            int number = i;
            adders[i] = started("adder-" + i, () -> {
                while (!over) {
                    synchronized (adding) { sum++; }
                    added[number]++;
                }
            });
        }
        System.out.println("ready");
        System.in.read();
        over = true;
        for (Thread adder : adders)
            adder.join();
        System.out.println(added[0] + added[1]);
        System.out.println(sum);
        System.in.read();
    }
}
