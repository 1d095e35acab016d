/* Tests of a fork in a signal handler, while a lock or its name is being entered. The child has the
 * same file and goes on with the entry. The test forks at each instruction, and twice at the same
 * one. The tree and the chains stay whole. */
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/ucontext.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/lock_key.h"
#include "base/tls.h"
#include "check.h"
#include "shm/array.h"
#include "shm/segment.h"
#include "tables/lock_names.h"
#include "tables/lock_table.h"

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)

enum { TRAP_FLAG = 0x100, RED_ZONE = 128 };

static volatile sig_atomic_t in_child, steps, fork_at, ended_badly;

/* Forks after each instruction. The children run on without single steps. */
static void step(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    if (in_child)
        _exit(2); /* the child should have run on */
    if (steps++ != fork_at)
        return;
    for (int i = 0; i < 2; i++) {
        int status = 1;
        pid_t child = fork();
        if (child == 0) {
            ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
            in_child = 1;
            return;
        }
        if (waitpid(child, &status, 0) != child || status != 0)
            ended_badly++;
    }
}

/* Sets the trap flag, and clears it again. */
#define STEP_BY_STEP(operation, mask)                                                              \
    __asm__ volatile("subq %0, %%rsp; pushfq; " operation " %1, (%%rsp); popfq; addq %0, %%rsp"    \
                     :                                                                             \
                     : "i"(RED_ZONE), "i"(mask)                                                    \
                     : "cc", "memory")

static void id_of(uint64_t key)
{
    lock_id(key, 0);
}

static void name_of(uint64_t key)
{
    lock_name_set(key, "name");
}

static void is_in_the_tree(uint64_t key)
{
    uint32_t id = lock_id(key, 0);
    CHECK(id);
    const struct lt_lock *lock = array_at(&lt_shm->locks, id);
    CHECK_EQUAL(lock->key, key);
    for (int i = 0; i < 4; i++)
        CHECK(lock->child[i] != id);
}

static void is_named(uint64_t key)
{
    uint32_t named = 0;
    for (uint32_t i = 0; i < lt_shm->names.count; i++) {
        const struct lt_name *name = array_at(&lt_shm->names, i);
        CHECK(name->next != i + 1);
        named += name->key == key && !strcmp((const char *)name->text, "name");
    }
    CHECK(named);
}

static uint64_t key_number(uintptr_t n)
{
    return lock_key(LT_KIND_MUTEX, (void *)(0x10000 + 40 * n));
}

/* Each time with another key, and with the fork one instruction later. */
static void forked_everywhere(void (*enter)(uint64_t), void (*check)(uint64_t))
{
    fork_at = 0;
    do {
        uint64_t key = key_number((uintptr_t)fork_at);
        steps = 0;
        STEP_BY_STEP("orq", TRAP_FLAG);
        enter(key);
        STEP_BY_STEP("andq", ~TRAP_FLAG);
        if (in_child)
            _exit(0);
        check(key);
    } while (fork_at++ < steps);
    CHECK(fork_at > 50);
    CHECK_EQUAL(ended_badly, 0);
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = step, .sa_flags = SA_SIGINFO};
    CHECK(watched());
    CHECK(sigaction(SIGTRAP, &action, NULL) == 0);
    lock_name_set(1, "makes the chains");
    forked_everywhere(id_of, is_in_the_tree);
    forked_everywhere(name_of, is_named);
    return 0;
}

#else

int main(void)
{
    return 0;
}

#endif
