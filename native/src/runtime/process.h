/* The life of the process: start, fork, exit. */
#ifndef LOCKTOP_PROCESS_H
#define LOCKTOP_PROCESS_H

/* A forked child's first hook: gives it a file of its own. */
void process_start_child(void);

#endif
