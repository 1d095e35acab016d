/* Tests of the names of locks: given, changed, taken back, and given by many threads at once. */
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "base/lock_key.h"
#include "check.h"
#include "order/lock_life.h"
#include "shm/array.h"
#include "shm/segment.h"
#include "tables/lock_names.h"

enum { NAMES = 5000, THREADS = 4 };

/* Reads every entry of the array, as a reader does. */
static const struct lt_name *only(uint64_t key)
{
    const struct lt_name *result = NULL;
    for (uint32_t i = 0; i < lt_shm->names.count; i++) {
        const struct lt_name *name = array_at(&lt_shm->names, i);
        if (name->key != key)
            continue;
        CHECK(!result);
        result = name;
    }
    return result;
}

static void is_called(uint64_t key, const char *text)
{
    const struct lt_name *name = only(key);
    CHECK(name);
    CHECK_EQUAL(name->seq % 2, 0);
    CHECK(strcmp((const char *)name->text, text) == 0);
}

static void one_name(void)
{
    static int lock;
    uint64_t address = (uint64_t)(uintptr_t)&lock, key = lock_key(LT_KIND_SEM, &lock);
    lock_name_set(address, ""); /* there is nothing to take back, and nothing is made */
    CHECK_EQUAL(lt_shm->names.count, 0);
    lock_name_set(address, "first");
    is_called(address, "first");
    lock_name_set(address, "second, longer");
    is_called(address, "second, longer");
    lock_name_set(key, "of the semaphore");
    is_called(address, "second, longer");
    is_called(key, "of the semaphore");
    char text[200];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    lock_name_set(address, text);
    text[LT_NAME_TEXT - 1] = 0;
    is_called(address, text);
    lock_life_ends(
        /* a lock of the same kind at the same address would be another lock */
        lock_key(LT_KIND_MUTEX, &lock));
    is_called(address, "");
    is_called(key, "of the semaphore");
    lock_life_begins(key, 0, NULL);
    is_called(key, "");
    CHECK_EQUAL(lt_shm->names.count, 2);
}

static void *names_all(void *unused)
{
    char text[32];
    for (uint64_t n = 0; n < NAMES; n++) {
        snprintf(text, sizeof text, "lock %d", (int)n);
        lock_name_set(0x100000 + n * 8, text);
    }
    return unused;
}

static void many_at_once(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, names_all, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    uint32_t named = 0;
    for (uint32_t i = 0; i < lt_shm->names.count; i++) {
        const struct lt_name *name = array_at(&lt_shm->names, i);
        if (name->key < 0x100000 || name->key >= 0x100000 + NAMES * 8)
            continue;
        char text[32];
        snprintf(text, sizeof text, "lock %d", (int)((name->key - 0x100000) / 8));
        CHECK(strcmp((const char *)name->text, text) == 0);
        named++;
    }
    CHECK_EQUAL(named, NAMES);
}

int main(void)
{
    CHECK(lt_shm);
    one_name();
    many_at_once();
    return 0;
}
