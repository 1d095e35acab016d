/* Tests of the shared file: growth over segments, arrays that do not move, a full file
 * system, a limited file. */
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/settings.h"
#include "check.h"
#include "shm/arena.h"
#include "shm/array.h"
#include "shm/file.h"
#include "shm/segment.h"

static char directory[] = "/dev/shm/locktop-test-XXXXXX";

static struct stat file_status(void)
{
    char path[SHM_PATH_MAX];
    struct stat status;
    snprintf(path, sizeof path, "%s/locktop-%u-%llu", directory, lt_shm->pid,
             (unsigned long long)lt_shm->start_time);
    CHECK(stat(path, &status) == 0);
    return status;
}

static void grows_over_segments(void)
{
    enum { PIECE = 100000, PIECES = 150 }; /* 15 MB: segments of 1, 2, 4 and 8 MiB */
    static uint64_t offset[PIECES];
    for (int i = 0; i < PIECES; i++) {
        offset[i] = shm_alloc(PIECE);
        CHECK(offset[i]);
        CHECK_EQUAL(offset[i] % 64, 0);
        uint8_t *piece = shm_ptr(offset[i]);
        for (int j = 0; j < PIECE; j += 997)
            CHECK_EQUAL(piece[j], 0);
        memset(piece, i + 1, PIECE);
    }
    for (int i = 0; i < PIECES; i++) {
        const uint8_t *piece = shm_ptr(offset[i]);
        CHECK(piece[0] == (uint8_t)(i + 1) && piece[PIECE - 1] == (uint8_t)(i + 1));
        if (i)
            CHECK(offset[i] >= offset[i - 1] + PIECE);
    }
    CHECK(lt_shm->used <= lt_shm->backed);
}

/* A reader of the file finds at an offset what the library writes through the mapping. */
static void offsets_are_the_files(void)
{
    char path[SHM_PATH_MAX];
    snprintf(path, sizeof path, "%s/locktop-%u-%llu", directory, lt_shm->pid,
             (unsigned long long)lt_shm->start_time);
    FILE *file = fopen(path, "rb");
    CHECK(file);
    struct stat status;
    CHECK(fstat(fileno(file), &status) == 0);
    CHECK_EQUAL(status.st_mode & 0777, 0600);
    uint64_t offset = shm_alloc(64);
    memcpy(shm_ptr(offset), "here it is", 11);
    char text[11];
    CHECK(pread(fileno(file), text, sizeof text, (off_t)offset) == sizeof text);
    CHECK(memcmp(text, "here it is", 11) == 0);
    fclose(file);
}

static void arrays_do_not_move(void)
{
    enum { ELEMENTS = 3000 };
    static struct lt_array array;
    array_init(&array, sizeof(uint64_t), 4);
    static uint64_t *address[ELEMENTS];
    for (uint32_t i = 0; i < ELEMENTS; i++) {
        uint32_t index;
        address[i] = array_push(&array, &index);
        CHECK(address[i]);
        CHECK_EQUAL(index, i);
        CHECK_EQUAL(*address[i], 0);
        *address[i] = i;
    }
    for (uint32_t i = 0; i < ELEMENTS; i++) {
        CHECK(array_at(&array, i) == address[i]);
        CHECK_EQUAL(*address[i], i);
    }
    CHECK(!array_at(&array, ELEMENTS));
}

static struct lt_array shared;

static void *push(void *argument)
{
    (void)argument;
    for (uint64_t i = 0; i < 20000; i++) {
        uint32_t index;
        uint64_t *element = array_push(&shared, &index);
        CHECK(element);
        CHECK_EQUAL(*element, 0);
        *element = index + 1;
        CHECK(index < __atomic_load_n(&shared.backed, __ATOMIC_ACQUIRE));
    }
    return NULL;
}

/* The pages of large chunks are reserved step by step, whichever thread needs them first. */
static void arrays_reserve_what_they_use(void)
{
    array_init(&shared, 64, 128);
    pthread_t thread[4];
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&thread[i], NULL, push, NULL) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(thread[i], NULL) == 0);
    CHECK_EQUAL(shared.count, 80000);
    for (uint32_t i = 0; i < shared.count; i++)
        CHECK_EQUAL(*(uint64_t *)array_at(&shared, i), i + 1);
    CHECK(shared.backed - shared.count <= (256 << 10) / 64);
    CHECK(!array_at(&shared, shared.count));
}

/* Whole pages go back to the system; the range is zero when it is reserved again. */
static void pages_come_and_go(void)
{
    enum { SIZE = 1 << 20 };
    uint64_t offset = shm_alloc_reusable(SIZE), backed = lt_shm->backed;
    CHECK_EQUAL(offset % LT_PAGE, 0);
    CHECK(shm_reserve(offset, SIZE));
    uint8_t *piece = shm_ptr(offset);
    memset(piece, 7, SIZE);
    long before = file_status().st_blocks;
    shm_give_back(offset, SIZE);
    CHECK_EQUAL(before - file_status().st_blocks, SIZE / 512);
    CHECK(shm_reserve(offset, SIZE));
    CHECK_EQUAL(before, file_status().st_blocks);
    for (int i = 0; i < SIZE; i++)
        CHECK_EQUAL(piece[i], 0);
    CHECK_EQUAL(lt_shm->backed, backed);
}

static uint64_t taken[4][1000];

static void *take(void *argument)
{
    uint64_t *mine = argument;
    for (int i = 0; i < 1000; i++) {
        mine[i] = shm_alloc(192);
        CHECK(mine[i]);
        *(uint64_t *)shm_ptr(mine[i]) = mine[i];
    }
    return NULL;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void threads_get_their_own(void)
{
    pthread_t thread[4];
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&thread[i], NULL, take, taken[i]) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(thread[i], NULL) == 0);
    uint64_t *all = &taken[0][0];
    qsort(all, 4000, sizeof *all, by_value);
    for (int i = 1; i < 4000; i++)
        CHECK(all[i] - all[i - 1] >= 192);
}

/* A request beyond the file's limit is refused and noted; no SIGXFSZ and no SIGBUS kills the
 * program. */
static void an_end_is_an_answer(void)
{
    uint64_t limit = lt_shm->limit;
    lt_shm->limit = lt_shm->used + 4096;
    CHECK_EQUAL(shm_alloc(1 << 20), 0);
    CHECK(lt_shm->notes & LT_NOTE_NO_ROOM);
    CHECK(lt_shm->refused > 0);
    lt_shm->limit = limit;
}

static void refusals_have_a_reason(void)
{
    char reason[160];
    CHECK(!shm_create("/nowhere/at/all", reason, sizeof reason));
    CHECK(strstr(reason, "no such directory"));
    CHECK(!lt_shm);
    CHECK_EQUAL(shm_alloc(64), 0);
}

/* A file of the same name is this process before it called exec: it is replaced, not shared. */
static void a_file_from_before_exec_is_replaced(void)
{
    char reason[160];
    CHECK(shm_create(directory, reason, sizeof reason));
    lt_shm->notes = 77;
    shm_detach();
    CHECK(shm_create(directory, reason, sizeof reason));
    CHECK_EQUAL(lt_shm->notes, 0);
}

/* A file of the same name from another container stays. */
static void a_file_of_another_namespace_stays(void)
{
    char reason[160], path[SHM_PATH_MAX];
    ino_t other = file_status().st_ino;
    lt_shm->pid_namespace++;
    shm_detach();
    CHECK(shm_create(directory, reason, sizeof reason));
    CHECK_EQUAL(file_status().st_ino, other);
    shm_remove();
    CHECK_EQUAL(file_status().st_ino, other);
    snprintf(path, sizeof path, "%s/locktop-%u-%llu", directory, lt_shm->pid,
             (unsigned long long)lt_shm->start_time);
    unlink(path);
    shm_detach();
    CHECK(shm_create(directory, reason, sizeof reason));
}

int main(void)
{
    CHECK(mkdtemp(directory));
    refusals_have_a_reason();
    a_file_from_before_exec_is_replaced();
    a_file_of_another_namespace_stays();
    grows_over_segments();
    offsets_are_the_files();
    arrays_do_not_move();
    arrays_reserve_what_they_use();
    pages_come_and_go();
    threads_get_their_own();
    an_end_is_an_answer();
    shm_remove();
    CHECK(rmdir(directory) == 0); /* no file is left */
    return 0;
}
