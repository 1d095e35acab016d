/* Keeps simulated threads in a binary heap, in which each thread knows its position. */
#include "thread_heap.h"

#include <stdlib.h>

#include "simulation.h"

int heap_reserve(struct thread_heap *heap, uint64_t count)
{
    struct sim_thread **threads;

    if (count <= heap->capacity)
        return 1;
    if (count < 2 * heap->capacity)
        count = 2 * heap->capacity;
    threads = realloc(heap->threads, count * sizeof *threads);
    if (!threads)
        return 0;
    heap->threads = threads;
    heap->capacity = count;
    return 1;
}

struct sim_thread *heap_first(const struct thread_heap *heap)
{
    return heap->count ? heap->threads[0] : NULL;
}

int heap_precedes(const struct sim_thread *thread, const struct sim_thread *other)
{
    const struct heap_entry *first = &thread->entry, *second = &other->entry;

    return first->key != second->key ? first->key < second->key : first->order < second->order;
}

static void put(struct thread_heap *heap, uint64_t index, struct sim_thread *thread)
{
    heap->threads[index] = thread;
    thread->entry.position = index + 1;
}

/* Moves a thread up from the free position `at`. */
static void rise(struct thread_heap *heap, uint64_t index, struct sim_thread *thread)
{
    while (index && heap_precedes(thread, heap->threads[(index - 1) / 2])) {
        put(heap, index, heap->threads[(index - 1) / 2]);
        index = (index - 1) / 2;
    }
    put(heap, index, thread);
}

/* Moves a thread down from the free position `at`. */
static void sink(struct thread_heap *heap, uint64_t index, struct sim_thread *thread)
{
    for (;;) {
        uint64_t child = 2 * index + 1;

        if (child + 1 < heap->count &&
            heap_precedes(heap->threads[child + 1], heap->threads[child]))
            child++;
        if (child >= heap->count || !heap_precedes(heap->threads[child], thread))
            break;
        put(heap, index, heap->threads[child]);
        index = child;
    }
    put(heap, index, thread);
}

int heap_add(struct thread_heap *heap, struct sim_thread *thread, int64_t key, uint64_t order)
{
    if (!heap_reserve(heap, heap->count + 1))
        return 0;
    thread->entry.key = key;
    thread->entry.order = order;
    rise(heap, heap->count++, thread);
    return 1;
}

void heap_remove(struct thread_heap *heap, struct sim_thread *thread)
{
    uint64_t index = thread->entry.position - 1;
    struct sim_thread *last = heap->threads[--heap->count];

    thread->entry.position = 0;
    if (last == thread)
        return;
    if (index && heap_precedes(last, heap->threads[(index - 1) / 2]))
        rise(heap, index, last);
    else
        sink(heap, index, last);
}
