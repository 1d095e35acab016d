/* Tests of the encoder against bytes written down by hand from the msgpack specification. */
#include <stdint.h>
#include <string.h>

#include "account/event_ring.h"
#include "account/lock_event.h"
#include "check.h"

static void is_just(const uint8_t *record, const uint8_t *expected)
{
    for (int i = 0; i < LT_RECORD_SIZE; i++)
        if (record[1 + i] != expected[i]) {
            fprintf(stderr, "byte %d is %02x, expected %02x\n", i, record[1 + i], expected[i]);
            exit(1);
        }
    CHECK(record[0] == 0xaa && record[LT_RECORD_SIZE + 1] == 0xaa);
}

static void encodes(const struct lock_event *event, uint32_t tid, const uint8_t *expected)
{
    uint8_t record[LT_RECORD_SIZE + 2];
    memset(record, 0xaa, sizeof record);
    event_encode(record + 1, tid, event);
    is_just(record, expected);
}

static void encodes_mark(uint32_t tid, uint64_t now, const char *text, const uint8_t *expected)
{
    uint8_t record[LT_RECORD_SIZE + 2];
    memset(record, 0xaa, sizeof record);
    mark_encode(record + 1, tid, now, text);
    is_just(record, expected);
}

int main(void)
{
    static const uint8_t small[LT_RECORD_SIZE] = {
        0x9b, 0x01, 0x01,                                     /* array of 11, wait, mutex */
        0xce, 0x00, 0x00, 0x00, 0x02,                         /* tid */
        0xce, 0x00, 0x00, 0x00, 0x03,                         /* lock */
        0xce, 0x00, 0x00, 0x00, 0x04,                         /* stack */
        0xce, 0x00, 0x00, 0x00, 0x05,                         /* holder */
        0xcf, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x06, /* start */
        0xcf, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x07, /* wait */
        0xcf, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x08, /* hold */
        0xcf, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x09, /* site */
        0xc4, 0x03, 0x00, 0x00, 0x00,                         /* bin of 3 */
    };
    encodes(&(struct lock_event){LT_RECORD_WAIT, LT_KIND_MUTEX, 3, 4, 5, 6, 7, 8, 9}, 2, small);

    static const uint8_t large[LT_RECORD_SIZE] = {
        0x9b, 0x02, 0x0a, 0xce, 0xff, 0xff, 0xff, 0xff, 0xce, 0x01, 0x02, 0x03, 0x04,
        0xce, 0x80, 0x00, 0x00, 0x00, 0xce, 0x00, 0x3f, 0xff, 0xff, 0xcf, 0x01, 0x23,
        0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0xcf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0xff, 0xff, 0xcf, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xcf, 0x00,
        0x00, 0x7f, 0xff, 0xf7, 0xde, 0xad, 0x01, 0xc4, 0x03, 0x00, 0x00, 0x00,
    };
    encodes(&(struct lock_event){LT_RECORD_TIMEOUT, LT_KIND_CUSTOM, 0x01020304, 0x80000000,
                                 0x3fffff, 0x0123456789abcdef, UINT64_MAX, 1ull << 63,
                                 0x7ffff7dead01},
            UINT32_MAX, large);

    uint8_t mark[LT_RECORD_SIZE] = {0x95, 0x04, 0xce, 0x00, 0x00, 0x00, 0x02, 0xcf, 0x00,
                                    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0xd9, LT_MARK_TEXT};
    memcpy(mark + 18, "reload", 6);
    mark[62] = 0xc4; /* bin of 0 */
    encodes_mark(2, 3, "reload", mark);
    memset(mark + 18, 'x', LT_MARK_TEXT);
    encodes_mark(2, 3, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", mark);
    return 0;
}
