/* The holder of g_lock is in a system call, or runs; each argument is one activity. Another thread
 * waits for g_lock. The program says what the holder is about to do, in the words that locktop
 * should use.
 */
#include <alloca.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <semaphore.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "../target.h"

typedef void way(void);

static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static way *chosen;
static sem_t taken;
static int holder, waiter, bell[2];
static volatile int forever = 1;

static KEPT void rests(void)
{
    char c;
    must(read(bell[0], &c, 1) < 0 ? errno : 0, "read");
}

static void about_to(const char *format, ...)
{
    char line[512];
    va_list values;
    va_start(values, format);
    vsnprintf(line, sizeof line, format, values);
    va_end(values);
    say(line);
    sem_post(&taken);
}

static const char *link_of(int fd)
{
    static char target[2][256];
    static int turn;
    char path[64], *own = target[turn++ % 2];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(path, own, sizeof *target - 1);
    own[length > 0 ? length : 0] = 0;
    return own;
}

static void reads_a_pipe(void)
{
    int ends[2];
    char c;
    must(pipe(ends) ? errno : 0, "pipe");
    about_to("read(%d -> %s)", ends[0], link_of(ends[0]));
    must(read(ends[0], &c, 1) < 0 ? errno : 0, "read");
}

/* A free name: a killed process with the same pid may have left its file. */
static void own_path(char *path, size_t size)
{
    snprintf(path, size, "/tmp/locktop-holders-%d", getpid());
    unlink(path);
}

/* A FIFO has a path. No process reads the FIFO, so the FIFO fills up. */
static void writes_a_file(void)
{
    char path[64];
    static char page[4096];
    own_path(path, sizeof path);
    must(mkfifo(path, 0600) ? errno : 0, "mkfifo");
    int fd = open(path, O_RDWR);
    unlink(path);
    must(fd < 0 ? errno : 0, "open");
    fcntl(fd, F_SETFL, O_NONBLOCK);
    while (write(fd, page, sizeof page) > 0)
        continue;
    fcntl(fd, F_SETFL, 0);
    about_to("write(%d -> %s (deleted))", fd, path);
    must(write(fd, page, sizeof page) < 0 ? errno : 0, "write");
}

static int local(struct sockaddr_in *where)
{
    socklen_t size = sizeof *where;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    *where = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    must(bind(fd, (void *)where, sizeof *where) ? errno : 0, "bind");
    must(listen(fd, 1) ? errno : 0, "listen");
    getsockname(fd, (void *)where, &size);
    return fd;
}

static void accepts(void)
{
    struct sockaddr_in where;
    int fd = local(&where);
    about_to("accept(%d -> tcp listening at 127.0.0.1:%d)", fd, ntohs(where.sin_port));
    must(accept(fd, NULL, NULL) < 0 ? errno : 0, "accept");
}

static void receives(void)
{
    struct sockaddr_in where, own;
    socklen_t size = sizeof own;
    char c;
    int server = local(&where), fd = socket(AF_INET, SOCK_STREAM, 0);
    must(connect(fd, (void *)&where, sizeof where) ? errno : 0, "connect");
    must(accept(server, NULL, NULL) < 0 ? errno : 0, "accept");
    getsockname(fd, (void *)&own, &size);
    about_to("recvfrom(%d -> tcp 127.0.0.1:%d -> 127.0.0.1:%d)", fd, ntohs(own.sin_port),
             ntohs(where.sin_port));
    must(recv(fd, &c, 1, 0) < 0 ? errno : 0, "recv");
}

static void listens_at_a_path(void)
{
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    own_path(where.sun_path, sizeof where.sun_path);
    must(bind(fd, (void *)&where, sizeof where) ? errno : 0, "bind");
    must(listen(fd, 1) ? errno : 0, "listen");
    unlink(where.sun_path);
    about_to("accept(%d -> unix %s)", fd, where.sun_path);
    must(accept(fd, NULL, NULL) < 0 ? errno : 0, "accept");
}

static void polls(void)
{
    int one[2], other[2];
    must(pipe(one) || pipe(other) ? errno : 0, "pipe");
    struct pollfd both[] = {{.fd = one[0], .events = POLLIN}, {.fd = other[0], .events = POLLIN}};
    about_to("poll(%d -> %s, %d -> %s)", one[0], link_of(one[0]), other[0], link_of(other[0]));
    poll(both, 2, -1);
}

static void sleeps(void)
{
    about_to("clock_nanosleep(1000.25 s)");
    nanosleep(&(struct timespec){.tv_sec = 1000, .tv_nsec = 250000000}, NULL);
}

static void opens(void)
{
    char path[64];
    own_path(path, sizeof path);
    must(mkfifo(path, 0600) ? errno : 0, "mkfifo");
    about_to("openat(%s)", path);
    must(open(path, O_RDONLY) < 0 ? errno : 0, "open");
}

static void awaits_a_child(void)
{
    pid_t child = fork();
    if (child == 0) {
        hear();
        _exit(0);
    }
    about_to("wait4(process %d)", child);
    waitpid(child, NULL, 0);
}

/* The code does not tell the frame size. libc saves no register on the way to the kernel. */
static void takes_memory(void)
{
    int ends[2];
    must(pipe(ends) ? errno : 0, "pipe");
    char *some = alloca((size_t)getpid() % 64 + 100);
    about_to("read(%d -> %s)", ends[0], link_of(ends[0]));
    must(read(ends[0], some, 1) < 0 ? errno : 0, "read");
}

static KEPT void works(void)
{
    while (forever)
        continue;
    forever++;
}

static void runs(void)
{
    about_to("");
    works();
    forever++;
}

/* Begins to work at a line. */
static void rests_and_runs(void)
{
    about_to("");
    rests();
    works();
    forever++;
}

static KEPT void *hold(void *unused)
{
    holder = own_tid();
    must(pthread_mutex_lock(&g_lock), "lock");
    chosen();
    return unused;
}

static KEPT void *want(void *unused)
{
    waiter = own_tid();
    sem_post(&taken);
    must(pthread_mutex_lock(&g_lock), "lock");
    return unused;
}

static void wait_for_it(void)
{
    while (sem_wait(&taken) != 0)
        continue;
}

static const struct {
    const char *name;
    way *way;
} ways[] = {
    {"reads_a_pipe", reads_a_pipe},
    {"writes_a_file", writes_a_file},
    {"accepts", accepts},
    {"receives", receives},
    {"listens_at_a_path", listens_at_a_path},
    {"polls", polls},
    {"sleeps", sleeps},
    {"opens", opens},
    {"awaits_a_child", awaits_a_child},
    {"takes_memory", takes_memory},
    {"runs", runs},
    {"rests_and_runs", rests_and_runs},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (argc > 1 && strcmp(ways[i].name, argv[1]) == 0)
            chosen = ways[i].way;
    if (!chosen)
        return 2;
    sem_init(&taken, 0, 0);
    must(pipe(bell) ? errno : 0, "pipe");
    start(hold, NULL, "holder");
    wait_for_it();
    start(want, NULL, "waiter");
    wait_for_it();
    while (!is_asleep(waiter) || (forever && chosen != runs && !is_asleep(holder)))
        pause_ms(1);
    say("ready");
    if (argc > 2 && strcmp(argv[2], "leaves") == 0)
        pthread_exit(NULL); /* the other threads continue */
    hear();
    must(write(bell[1], "", 1) < 0 ? errno : 0, "write");
    hear();
    return 0;
}
