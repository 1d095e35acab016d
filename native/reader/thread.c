/* Reads the blocks and tables of threads, and notices which threads changed. */
#include "reader.h"

#include <stddef.h>
#include <string.h>

enum { ATTEMPTS = 4 };

static int in_use(const struct lt_thread *block)
{
    return block->tid && (block->state == LT_THREAD_LIVE || block->state == LT_THREAD_EXITING ||
                          block->state == LT_THREAD_KEPT);
}

static uint64_t counters_bytes(const struct lt_thread *block)
{
    return block->counters ? block->counters_capacity * sizeof(struct lt_lock_counters) : 0;
}

static uint64_t site_bytes(const struct lt_thread *block)
{
    return block->sites ? block->site_capacity * sizeof(struct lt_site) : 0;
}

static uint64_t wait_bytes(const struct lt_thread *block)
{
    return (uint64_t)block->waits.count * sizeof(struct lt_waits);
}

static uint64_t line_bytes(const struct lt_histograms *histograms)
{
    return histograms->lines ? histograms->capacity * sizeof(struct lt_histogram_line) : 0;
}

static int copy_waits(const struct lt_mapping *file, uint8_t *to, const struct lt_array *waits)
{
    uint64_t left = waits->count;

    for (int chunk = 0; left; chunk++) {
        uint64_t count = (uint64_t)waits->first << chunk;

        if (chunk == LT_CHUNKS || !count || !waits->chunk[chunk])
            return 0;
        if (count > left)
            count = left;
        if (!lt_copy(file, to, count * sizeof(struct lt_waits), waits->chunk[chunk]))
            return 0;
        to += count * sizeof(struct lt_waits);
        left -= count;
    }
    return 1;
}

/* Copies the waits first: then no lock has more contended acquisitions than acquisitions. The lines
 * come before: then no histogram has more waits. */
static int copy_tables(struct lt_thread_read *read, const struct lt_thread *block)
{
    uint64_t counters = counters_bytes(block), sites = site_bytes(block), waits = wait_bytes(block);
    uint64_t lines = read->skips_lines ? 0 : line_bytes(&block->histograms);

    read->scratch_needed = counters + sites + waits + lines;
    if (read->scratch_needed > read->scratch_max)
        return LT_READ_DAMAGED;
    if (read->scratch_needed > read->scratch_size)
        return LT_READ_MORE_SCRATCH;
    if (!lt_copy(read->file, read->scratch + counters + sites + waits, lines,
                 block->histograms.lines) ||
        !copy_waits(read->file, read->scratch + counters + sites, &block->waits) ||
        !lt_copy(read->file, read->scratch, counters, block->counters) ||
        !lt_copy(read->file, read->scratch + counters, sites, block->sites))
        return LT_READ_DAMAGED;
    return LT_READ_DONE;
}

/* A long wait that ended while the tables were copied may or may not be in them. */
static int long_wait_ended(const struct lt_thread_read *read, const struct lt_thread *before)
{
    const struct lt_wait *wait = &before->wait;

    return wait->key && wait->seq != read->block.wait.seq && read->now > wait->since &&
           read->now - wait->since > read->long_wait;
}

static int equal(const struct lt_wait *a, const struct lt_wait *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

static uint32_t held_bytes(const struct lt_thread *block)
{
    return block->held_top < sizeof block->held_inline ? block->held_top
                                                       : (uint32_t)sizeof block->held_inline;
}

/* Copies the parts of a block that a reading uses. Most of a block is for the library alone. The
 * wait is copied first. If the wait is the same later, all the rest is of the time of that wait. */
static int copy_block(const struct lt_thread_read *read, struct lt_thread *to, uint64_t offset)
{
    struct lt_wait wait;

    if (!lt_copy(read->file, &wait, sizeof wait, offset + offsetof(struct lt_thread, wait)) ||
        !lt_copy(read->file, to, offsetof(struct lt_thread, own), offset))
        return 0;
    to->wait = wait;
    return lt_copy(read->file, &to->histograms, sizeof to->histograms,
                   offset + offsetof(struct lt_thread, histograms)) &&
           lt_copy(read->file, to->held_inline, held_bytes(to),
                   offset + offsetof(struct lt_thread, held_inline));
}

/* The copy of a wait may be torn: only two equal copies are of one wait. The held list does not
 * change while the thread waits. So a held list that was copied between the two belongs to the
 * wait. */
static int settle_wait(struct lt_thread_read *read, uint64_t offset, const struct lt_thread *first)
{
    struct lt_thread *block = &read->block;
    struct lt_wait again;

    if (equal(&first->wait, &block->wait)) {
        block->held = first->held;
        block->held_size = first->held_size;
        block->held_top = first->held_top;
        return 1;
    }
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        if (!copy_block(read, block, offset) ||
            !lt_copy(read->file, &again, sizeof again, offset + offsetof(struct lt_thread, wait)))
            return 0;
        read->now = lt_reader_ticks(read->clock);
        if (equal(&again, &block->wait))
            return 1;
    }
    block->wait.key = 0;
    return 1;
}

static int gone(const struct lt_thread *now, const struct lt_thread *first)
{
    return !in_use(now) || now->birth != first->birth;
}

static uint64_t uncounted(const struct lt_thread_sum *sum, uint32_t contention)
{
    uint64_t contended = 0;

    for (int kind = 0; kind < LT_KINDS; kind++)
        contended += contention >> kind & 1 ? sum->contended[kind] : 0;
    return contended > sum->counted ? contended - sum->counted : 0;
}

static int fold(struct lt_thread_read *read, const struct lt_thread *tables)
{
    uint64_t counters = counters_bytes(tables), sites = site_bytes(tables);
    uint64_t lines = read->skips_lines ? 0 : line_bytes(&tables->histograms);
    uint64_t counted = read->sum.counted;

    if (!lt_lines_fit(&read->lines, lines / sizeof(struct lt_histogram_line)))
        return LT_READ_MORE_LINES;
    int result = lt_fold_sites(read->scratch + counters, sites, read->block.tid, &read->sites);

    if (result != LT_READ_DONE)
        return result;
    memset(&read->sum, 0, offsetof(struct lt_thread_sum, uses));
    read->sum.tid = read->block.tid;
    read->refused += lt_fold_counters(read->scratch, counters, read->scratch + counters + sites,
                                      tables->waits.count, read->sums, read->sum_count, &read->sum);
    lt_fold_other(&read->block, read->sums, read->sum_count, &read->sum);
    read->line_bytes += line_bytes(&tables->histograms);
    read->lines.left_out += tables->histograms.left_out;
    if (read->skips_lines)
        return LT_READ_DONE;
    read->refused +=
        lt_fold_lines(read->scratch + counters + sites + wait_bytes(tables), lines, read->sums,
                      read->sum_count, read->contention, &read->lines, &counted);
    read->sum.counted = counted;
    if (tables->histograms.left_out)
        read->sum.left_out = uncounted(&read->sum, read->contention);
    return LT_READ_DONE;
}

/* Copies the block and the tables of one thread, checks that they belong together, and adds them to
 * the sums. */
static int read_one(struct lt_thread_read *read, uint64_t offset)
{
    const uint64_t head = offsetof(struct lt_thread, own);
    struct lt_thread tables, first;

    if (!copy_block(read, &first, offset))
        return LT_READ_DAMAGED;
    if (!in_use(&first))
        return LT_READ_GONE;
    memcpy(&tables, &first, head);
    tables.histograms = first.histograms;
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        read->now = lt_reader_ticks(read->clock);
        int result = copy_tables(read, &tables);
        if (result != LT_READ_DONE)
            return result;
        memcpy(read->block.held_inline, first.held_inline, held_bytes(&first));
        if (!lt_copy(read->file, &read->block, head, offset))
            return LT_READ_DAMAGED;
        if (gone(&read->block, &first))
            return LT_READ_GONE;
        if (read->block.table_seq == tables.table_seq && !(tables.table_seq & 1) &&
            !long_wait_ended(read, &tables))
            break;
        if (attempt + 1 == ATTEMPTS)
            break;
        memcpy(&tables, &read->block, head);
        if (!lt_copy(read->file, &tables.histograms, sizeof tables.histograms,
                     offset + offsetof(struct lt_thread, histograms)))
            return LT_READ_DAMAGED;
    }
    if (!settle_wait(read, offset, &first))
        return LT_READ_DAMAGED;
    if (gone(&read->block, &first))
        return LT_READ_GONE;
    return fold(read, &tables);
}

/* ---- changes since the reading before ---- */

struct packed {
    uint8_t *cursor;
    size_t left;
};

static int pack(struct packed *to, const void *from, size_t size)
{
    if (size > to->left)
        return 0;
    memcpy(to->cursor, from, size);
    to->cursor += size;
    to->left -= size;
    return 1;
}

/* Packs all that the caller learns of the thread but the time and the histogram. A held list that
 * lies elsewhere is not at hand; then nothing is packed. */
static void pack_all(const struct lt_thread_read *read, uint64_t offset,
                     struct lt_thread_seen *seen)
{
    const struct lt_thread *block = &read->block;
    const struct lt_thread_sum *sum = &read->sum;
    struct packed to = {(uint8_t *)seen->data, sizeof seen->data};
    int is_inline = block->held == offset + offsetof(struct lt_thread, held_inline) &&
                    block->held_top <= sizeof block->held_inline;

    seen->size = 0;
    if ((block->held_top == 0 || is_inline) && sum->use_count <= LT_USES &&
        pack(&to, block, offsetof(struct lt_thread, own)) &&
        pack(&to, block->held_inline, block->held_top) &&
        pack(&to, sum, offsetof(struct lt_thread_sum, counted)) &&
        pack(&to, &sum->use_count, sizeof sum->use_count) &&
        pack(&to, sum->uses, sum->use_count * sizeof *sum->uses))
        seen->size = (uint64_t)(to.cursor - (uint8_t *)seen->data);
}

/* Whether the fields of two blocks are the same that lt_pack_thread() packs as the block. */
static int is_same_block(const struct lt_thread *a, const struct lt_thread *b)
{
    return memcmp(a, b, offsetof(struct lt_thread, wait)) == 0 && a->held == b->held &&
           a->held_size == b->held_size && a->held_top == b->held_top && a->ring == b->ring &&
           a->ring_capacity == b->ring_capacity;
}

/* Whether the histogram is as before, or was not read. Its counts only grow. */
static int is_same_histogram(const struct lt_thread_read *read, const struct lt_thread_seen *seen)
{
    return read->skips_lines ||
           (read->sum.counted == seen->counted && read->sum.left_out == seen->left_out);
}

static void note_histogram(const struct lt_thread_read *read, struct lt_thread_seen *seen)
{
    const struct lt_thread *before = (const struct lt_thread *)seen->data;

    if (!read->skips_lines) {
        seen->counted = read->sum.counted;
        seen->left_out = read->sum.left_out;
    } else if (!seen->size || before->birth != read->block.birth) {
        seen->counted = seen->left_out = LT_NEVER_COUNTED;
    }
}

/* Packs the thread that was read last, unless it is as `seen`. Returns 0 if it is too large. */
static int pack_change(struct lt_thread_read *read, uint32_t index, uint64_t offset,
                       struct lt_thread_seen *seen)
{
    struct lt_thread_seen now;
    int knows_block;

    pack_all(read, offset, &now);
    if (now.size && now.size == seen->size && memcmp(now.data, seen->data, now.size) == 0 &&
        is_same_histogram(read, seen))
        return 1;
    knows_block = seen->size && is_same_block((const struct lt_thread *)seen->data, &read->block);
    note_histogram(read, seen);
    seen->size = now.size;
    memcpy(seen->data, now.data, now.size);
    if (now.size)
        lt_pack_thread(read, index, offset, knows_block);
    return now.size != 0;
}

static void note_ring(struct lt_ring *ring, const struct lt_thread *block, uint64_t offset)
{
    ring->offset = block->ring;
    ring->capacity = block->ring_capacity;
    ring->head_at = offset + offsetof(struct lt_thread, ring_head);
    ring->head = block->ring_head;
}

int lt_read_threads(struct lt_thread_read *read, const uint64_t *offsets, uint32_t count,
                    struct lt_thread_seen *seen, uint64_t *now, struct lt_ring *rings)
{
    while (read->next < count) {
        uint32_t i = read->next;
        int result;

        if (read->packed_capacity - read->packed_size < LT_PACKED_MAX)
            return LT_READ_MORE_PACKED;
        result = read_one(read, offsets[i]);
        if (result == LT_READ_GONE) {
            now[i] = seen[i].size = 0;
            rings[i].head = rings[i].first;
        } else if (result != LT_READ_DONE) {
            return result;
        } else {
            now[i] = read->now;
            note_ring(&rings[i], &read->block, offsets[i]);
            if (!pack_change(read, i, offsets[i], &seen[i])) {
                read->next++;
                return LT_READ_CHANGED;
            }
        }
        read->next++;
    }
    return LT_READ_DONE;
}
