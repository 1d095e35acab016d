// A thread that waits on a monitor for good, below code that the JVM compiled.
public class JavaMonitorParked {
    static final Object lock = new Object();

    public static void main(String[] arguments) throws Exception {
        Thread parker = new Thread(() -> {
            synchronized (lock) {
                try {
                    System.out.println("ready");
                    lock.wait();
                } catch (InterruptedException e) {
                }
            }
        }, "parker");
        parker.start();
        parker.join();
    }
}
