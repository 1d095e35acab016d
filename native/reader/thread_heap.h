/* A heap of simulated threads: the least key first, and of equal keys the one that came first. */
#ifndef LOCKTOP_THREAD_HEAP_H
#define LOCKTOP_THREAD_HEAP_H

#include <stdint.h>

struct sim_thread;

/* The part of a thread that its heap uses. */
struct heap_entry {
    int64_t key;
    uint64_t order;
    uint64_t position; /* from 1 on; 0: in no heap */
};

struct thread_heap {
    struct sim_thread **threads;
    uint64_t count;
    uint64_t capacity;
};

/* Makes room for `count` threads. Returns 0 if there is no memory. */
int heap_reserve(struct thread_heap *heap, uint64_t count);

/* Adds a thread that is in no heap. Returns 0 if there is no memory. */
int heap_add(struct thread_heap *heap, struct sim_thread *thread, int64_t key, uint64_t order);

/* Takes a thread out of its heap. */
void heap_remove(struct thread_heap *heap, struct sim_thread *thread);

/* Returns the first thread, NULL if the heap is empty. */
struct sim_thread *heap_first(const struct thread_heap *heap);

/* Whether the key of a thread of a heap comes before that of another one. */
int heap_precedes(const struct sim_thread *thread, const struct sim_thread *other);

#endif
