/* Tests of the event ring: it keeps the newest records, each of them whole, and the number of
 * all. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "account/event_ring.h"
#include "base/settings.h"
#include "base/tls.h"
#include "check.h"
#include "shm/segment.h"

enum { WRITTEN = 100000 };

static struct lt_thread *self(void)
{
    struct lt_thread *t = watched();
    CHECK(t);
    return t;
}

static struct lock_event numbered(uint64_t n)
{
    return (struct lock_event){.type = LT_RECORD_WAIT,
                               .kind = LT_KIND_MUTEX,
                               .lock = (uint32_t)n,
                               .stack = (uint32_t)n,
                               .holder = (uint32_t)n,
                               .start = n,
                               .wait = n,
                               .hold = n,
                               .site = n};
}

/* Whether a copied record is, bit for bit, the one with that number. */
static bool is_numbered(const uint8_t *record, uint32_t tid, uint64_t n)
{
    uint8_t expected[LT_RECORD_SIZE];
    struct lock_event event = numbered(n);
    event_encode(expected, tid, &event);
    return memcmp(record, expected, LT_RECORD_SIZE) == 0;
}

static void keeps_the_newest(void)
{
    struct lt_thread *t = self();
    uint64_t before = t->ring_head;
    for (uint64_t n = before; n < before + 1000; n++) {
        struct lock_event event = numbered(n);
        ring_write(t, &event);
    }
    CHECK_EQUAL(t->ring_head, before + 1000);
    CHECK_EQUAL(t->ring_capacity, RING_RECORDS);
    const uint8_t *ring = shm_ptr(t->ring);
    for (uint64_t n = t->ring_head - RING_RECORDS; n < t->ring_head; n++)
        CHECK(is_numbered(ring + n % RING_RECORDS * LT_RECORD_SIZE, t->tid, n));
}

static void a_mark_is_written_with_its_text(void)
{
    struct lt_thread *t = self();
    uint64_t before = t->ring_head;
    uint8_t expected[LT_RECORD_SIZE];
    mark_encode(expected, t->tid, 77, "began");
    ring_write_mark(t, 77, "began");
    CHECK_EQUAL(t->ring_head, before + 1);
    const uint8_t *ring = shm_ptr(t->ring);
    const uint8_t *record = ring + before % RING_RECORDS * LT_RECORD_SIZE;
    CHECK(memcmp(record, expected, LT_RECORD_SIZE) == 0);
    CHECK(memmem(record, LT_RECORD_SIZE, "began", 6)); /* with the zero behind it */
}

static struct lt_thread *writer_block;

static void *writer(void *unused)
{
    struct lt_thread *t = self();
    __atomic_store_n(&writer_block, t, __ATOMIC_RELEASE);
    for (uint64_t n = 0; n < WRITTEN; n++) {
        struct lock_event event = numbered(n);
        ring_write(t, &event);
    }
    return unused;
}

/* The reader's protocol: copy, read the head again, and keep only records that cannot have been
 * overwritten meanwhile. The record being written counts as overwritten. */
static uint64_t read_once(const struct lt_thread *t, uint8_t *copy)
{
    uint64_t head = __atomic_load_n(&t->ring_head, __ATOMIC_ACQUIRE);
    if (head == 0)
        return 0;
    const volatile uint8_t *ring = shm_ptr(t->ring);
    for (int i = 0; i < RING_RECORDS * LT_RECORD_SIZE; i++)
        copy[i] = ring[i];
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    uint64_t after = __atomic_load_n(&t->ring_head, __ATOMIC_ACQUIRE);
    uint64_t first = after >= RING_RECORDS ? after - RING_RECORDS + 1 : 0;
    uint64_t good = 0;
    for (uint64_t n = first; n < head; n++, good++)
        CHECK(is_numbered(copy + n % RING_RECORDS * LT_RECORD_SIZE, t->tid, n));
    return good;
}

static void can_be_read_while_written(void)
{
    static uint8_t copy[RING_RECORDS * LT_RECORD_SIZE];
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, writer, NULL) == 0);
    const struct lt_thread *t;
    while (!(t = __atomic_load_n(&writer_block, __ATOMIC_ACQUIRE)))
        ;
    uint64_t seen = 0;
    while (__atomic_load_n(&t->ring_head, __ATOMIC_ACQUIRE) < WRITTEN)
        seen += read_once(t, copy);
    seen += read_once(t, copy);
    CHECK(seen >= RING_RECORDS - 1);
    CHECK(pthread_join(thread, NULL) == 0);
}

int main(void)
{
    keeps_the_newest();
    a_mark_is_written_with_its_text();
    can_be_read_while_written();
    return 0;
}
