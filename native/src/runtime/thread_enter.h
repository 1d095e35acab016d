/* The slow path of watched(). */
#ifndef LOCKTOP_THREAD_ENTER_H
#define LOCKTOP_THREAD_ENTER_H

/* From now on threads get blocks: watched() of all layers calls this one. To be called once, before
 * the watch begins. */
void thread_enter_init(void);

#endif
