/* Refuses inspection by other processes: refuses_tracing WAY. One thread holds g_lock and reads in
 * read(). Another thread waits for g_lock.
 *
 *   open           the process refuses nothing
 *   undumpable     prctl(PR_SET_DUMPABLE)
 *   changed        the process has become user "nobody", and is dumpable again
 *   capable        as `changed`, and the process has kept a capability
 *
 * Each line on stdin switches between undumpable and dumpable.
 */
#include <linux/capability.h>
#include <stdatomic.h>
#include <sys/prctl.h>

#include "../target.h"

enum { NOBODY = 65534 };

pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;

static atomic_int waiter;

static KEPT void *wants(void *argument)
{
    waiter = own_tid();
    pthread_mutex_lock(&g_lock);
    return argument;
}

static void must_do(long result, const char *what)
{
    must(result < 0 ? errno : 0, what);
}

static void become_nobody(uint32_t capabilities)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {
        {.effective = capabilities, .permitted = capabilities}};
    must_do(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0), "PR_SET_KEEPCAPS");
    must_do(setresgid(NOBODY, NOBODY, NOBODY), "setresgid");
    must_do(setresuid(NOBODY, NOBODY, NOBODY), "setresuid");
    must_do(syscall(SYS_capset, &header, data), "capset");
    must_do(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), "PR_SET_DUMPABLE");
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    char c;
    if (!strcmp(way, "undumpable"))
        must_do(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), "PR_SET_DUMPABLE");
    else if (!strcmp(way, "changed"))
        become_nobody(0);
    else if (!strcmp(way, "capable"))
        become_nobody(1u << CAP_NET_BIND_SERVICE);
    pthread_mutex_lock(&g_lock);
    start(wants, NULL, "wants");
    while (!waiter || !is_asleep(waiter))
        pause_ms(1);
    say("ready");
    for (int dumpable = !!strcmp(way, "undumpable"); read(0, &c, 1) == 1;) {
        dumpable = !dumpable;
        must_do(prctl(PR_SET_DUMPABLE, dumpable, 0, 0, 0), "PR_SET_DUMPABLE");
        say(dumpable ? "dumpable" : "undumpable");
    }
    return 0;
}
