/* Locks of the program's own, as it tells of them through locktop.h. */
#ifndef LOCKTOP_CUSTOM_H
#define LOCKTOP_CUSTOM_H

/* Their table is made with the first of them. */
void custom_init(void);

#endif
