/* The table of a thread's histogram lines. */
#include "tables/histogram.h"

#include <stdbool.h>
#include <string.h>

#include "shm/arena.h"
#include "shm/array.h"
#include "shm/segment.h"
#include "tables/lock_table.h"
#include "tables/tables_state.h"
#include "tables/thread_table.h"

enum {
    FIRST_LINES = 16,
    MAX_LINES = 1024,   /* 64 KiB, of a budget of 100 KB for each thread */
    MAX_UNWAITED = 192, /* lines, from which on only locks with waits get more */
    RETRY = 1024        /* requests until the next attempt, which may be a system call */
};

_Static_assert(FIRST_LINES << (LINE_TABLE_SIZES - 1) == MAX_LINES, "a table without an offset");

static uint64_t key_of(const struct lt_lock_counters *counters, uint32_t part, uint32_t number)
{
    uint64_t kind = counters->lock ? counters->key >> LT_KIND_SHIFT : LT_KIND_MUTEX;
    return counters->lock | kind << LT_LINE_KIND_SHIFT | (uint64_t)part << LT_LINE_PART_SHIFT |
           (uint64_t)(number + 1) << LT_LINE_NUMBER_SHIFT;
}

/* The line with the key, or the empty one where the key belongs. */
static struct lt_histogram_line *probe(struct lt_histogram_line *lines, uint32_t capacity,
                                       uint64_t key)
{
    uint64_t hash = key * 0x9e3779b97f4a7c15u;
    for (uint32_t i = (uint32_t)(hash >> 32) & (capacity - 1);; i = (i + 1) & (capacity - 1))
        if (lines[i].key == key || lines[i].key == 0)
            return &lines[i];
}

static bool grow(struct lt_thread *t)
{
    struct tables_state *state = tables_state(t);
    struct lt_histograms *own = &t->histograms;
    const struct lt_histogram_line *old = state->lines;
    uint32_t old_capacity = own->capacity;
    uint32_t capacity = old_capacity ? 2 * old_capacity : FIRST_LINES;
    uint64_t old_offset = own->lines;
    uint64_t *kept_offset = &state->lines_offsets[__builtin_ctz(capacity / FIRST_LINES)];
    uint64_t offset = table_room(kept_offset, capacity * sizeof(struct lt_histogram_line));
    if (!offset)
        return false;
    struct lt_histogram_line *lines = shm_ptr(offset);
    for (uint32_t i = 0; i < old_capacity; i++)
        if (old[i].key)
            *probe(lines, capacity, old[i].key) = old[i];
    if (shm_is_of_parent())
        return false;
    thread_tables_begin_change(t);
    own->lines = offset;
    own->capacity = capacity;
    thread_tables_end_change(t);
    state->lines = lines;
    shm_give_back(old_offset, old_capacity * sizeof(struct lt_histogram_line));
    return true;
}

/* A program may have very many locks that no thread waits for. Their holds must leave room. */
static bool may_have_more(const struct lt_thread *t, const struct lt_lock_counters *counters,
                          uint32_t part)
{
    if (t->histograms.count < MAX_UNWAITED || !(part & LT_LINE_HOLDS) || counters->own)
        return true;
    const struct lt_lock *lock = array_at(&lt_shm->locks, counters->lock);
    return lock && __atomic_load_n(&lock->waits, __ATOMIC_RELAXED);
}

static bool has_room(struct lt_thread *t)
{
    const struct lt_histograms *own = &t->histograms;
    struct tables_state *state = tables_state(t);
    if (!histogram_is_full(t))
        return true;
    if (own->capacity == MAX_LINES || (state->lines_refused && --state->lines_refused))
        return false;
    bool has_grown = grow(t);
    state->lines_refused = has_grown ? 0 : RETRY;
    return has_grown;
}

/* The line, made at its first use; NULL if there is no room. */
static struct lt_histogram_line *line_of(struct lt_thread *t,
                                         const struct lt_lock_counters *counters, uint32_t part,
                                         uint32_t number)
{
    struct lt_histograms *own = &t->histograms;
    const struct tables_state *state = tables_state(t);
    uint64_t key = key_of(counters, part, number);
    struct lt_histogram_line *line = NULL;
    if (own->capacity)
        line = probe(state->lines, own->capacity, key);
    if (LIKELY(line && line->key))
        return line;
    if (!may_have_more(t, counters, part) || !has_room(t) || shm_is_of_parent())
        return NULL;
    line = probe(state->lines, own->capacity, key);
    __atomic_store_n(&line->key, key, __ATOMIC_RELEASE);
    own->count++;
    return line;
}

/* Makes room in a count that is nearly too large for its word. A reader that meets `table_seq` in
 * between reads again. */
static void carry(struct lt_thread *t, const struct lt_lock_counters *counters, uint32_t part,
                  uint32_t bucket)
{
    uint32_t number = bucket / LT_LINE_BUCKETS, slot = bucket % LT_LINE_BUCKETS;
    struct lt_histogram_line *to = line_of(t, counters, part | LT_LINE_CARRY, number);
    /* afterwards: the table may have moved */
    struct lt_histogram_line *from = line_of(t, counters, part, number);
    thread_tables_begin_change(t);
    from->counts[slot] -= 1u << LT_LINE_CARRY_BITS;
    if (to)
        to->counts[slot]++;
    else
        t->histograms.left_out += 1u << LT_LINE_CARRY_BITS;
    thread_tables_end_change(t);
}

/* No signal handler uses the table meanwhile. */
static void add(struct lt_thread *t, const struct lt_lock_counters *counters,
                enum lt_line_part part, uint64_t ticks)
{
    uint32_t bucket = bucket_of(ticks), slot = bucket % LT_LINE_BUCKETS;
    struct lt_histogram_line *line = line_of(t, counters, part, bucket / LT_LINE_BUCKETS);
    if (UNLIKELY(!line)) {
        t->histograms.left_out++;
        return;
    }
    line->counts[slot]++;
    if (UNLIKELY(line->counts[slot] == UINT32_MAX))
        carry(t, counters, part, bucket);
}

void histogram_make_room(struct lt_thread *t)
{
    uint32_t mode = thread_busy(t);
    has_room(t);
    thread_ready(t, mode);
}

void histogram_add(struct lt_thread *t, const struct lt_lock_counters *counters,
                   enum lt_line_part part, uint64_t ticks)
{
    uint32_t mode = thread_busy(t);
    add(t, counters, part, ticks);
    thread_ready(t, mode);
}

void histograms_retire(struct lt_thread *t)
{
    const struct lt_histogram_line *lines = tables_state(t)->lines;
    for (uint32_t i = 0; i < t->histograms.capacity; i++)
        if (lines[i].key)
            lock_retire_line(&lines[i]);
    lt_shm->lines_left_out += t->histograms.left_out;
}

void histograms_clear(struct lt_thread *t)
{
    struct lt_histograms *own = &t->histograms;
    if (own->count)
        memset(tables_state(t)->lines, 0, own->capacity * sizeof(struct lt_histogram_line));
    own->count = 0;
    own->left_out = 0;
}
