/* The table of the names that the program gives to its locks. */
#include "tables/lock_names.h"

#include <stdbool.h>
#include <string.h>

#include "base/lock_key.h"
#include "shm/arena.h"
#include "shm/array.h"
#include "shm/segment.h"

enum { NAMES_FIRST = 64, BUCKET_BITS = 12 };

void lock_names_init(void)
{
    array_init(&lt_shm->names, sizeof(struct lt_name), NAMES_FIRST);
}

static uint32_t *bucket_of(uint64_t key)
{
    uint64_t buckets = __atomic_load_n(&lt_shm->name_buckets, __ATOMIC_ACQUIRE);
    return buckets ? (uint32_t *)shm_ptr(buckets) + (lock_hash(key) >> (64 - BUCKET_BITS)) : NULL;
}

/* The chains are made with the first name. Of two threads that make them, one comes too late. */
static uint32_t *bucket_make(uint64_t key)
{
    if (!bucket_of(key)) {
        uint64_t none = 0, made = shm_alloc(sizeof(uint32_t) << BUCKET_BITS);
        if (!made)
            return NULL;
        lt_shm->name_bucket_count = 1u << BUCKET_BITS;
        __atomic_compare_exchange_n(&lt_shm->name_buckets, &none, made, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE);
    }
    return bucket_of(key);
}

static struct lt_name *find(uint64_t key, uint32_t head)
{
    for (uint32_t next = head; next;) {
        struct lt_name *name = array_at(&lt_shm->names, next - 1);
        if (name->key == key)
            return name;
        next = name->next;
    }
    return NULL;
}

/* If two threads change one name at the same moment, the second does nothing: no order between them
 * is known. */
static void write_text(struct lt_name *name, const char *text)
{
    uint32_t seq = __atomic_load_n(&name->seq, __ATOMIC_RELAXED);
    if (seq & 1 || !__atomic_compare_exchange_n(&name->seq, &seq, seq + 1, false, __ATOMIC_ACQUIRE,
                                                __ATOMIC_RELAXED))
        return;
    __atomic_thread_fence(__ATOMIC_RELEASE); /* odd before the text changes */
    memset(name->text, 0, sizeof name->text);
    memcpy(name->text, text, strnlen(text, sizeof name->text - 1));
    __atomic_store_n(&name->seq, seq + 2, __ATOMIC_RELEASE);
    __atomic_fetch_add(&lt_shm->names_changed, 1, __ATOMIC_RELEASE);
}

/* Adds a name. `head`: the head of a chain that does not have the key. */
static void add(uint64_t key, uint32_t *bucket, uint32_t head, const char *text)
{
    uint32_t index;
    struct lt_name *theirs, *name = array_push(&lt_shm->names, &index);
    if (!name)
        return;
    name->key = key;
    write_text(name, text);
    do {
        name->next = head;
        if (__atomic_compare_exchange_n(bucket, &head, index + 1, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
            return;
    } while (!(theirs = find(key, head)));
    if (theirs != name) /* else a child that was forked right here has gone on with the entry */
        name->key = 0;  /* another thread has just added the name: this entry stays unused */
}

void lock_name_set(uint64_t key, const char *text)
{
    uint32_t *bucket = *text ? bucket_make(key) : bucket_of(key);
    if (!bucket)
        return;
    uint32_t head = __atomic_load_n(bucket, __ATOMIC_ACQUIRE);
    struct lt_name *name = find(key, head);
    if (name)
        write_text(name, text);
    else if (*text)
        add(key, bucket, head, text);
}

void lock_name_forget(uint64_t key)
{
    lock_name_set(key, "");
    lock_name_set(key & ~((uint64_t)0xff << LT_KIND_SHIFT), "");
}
