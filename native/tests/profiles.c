/* Tests of profiles: the ranges of counts in the shared memory, the counting, and damaged files. */
#include <fcntl.h>
#include <locktop.h>
#include <string.h>
#include <unistd.h>

#include "base/elf_functions.h"
#include "base/tls.h"
#include "check.h"
#include "profiling/code_modules.h"
#include "profiling/profile.h"
#include "profiling/profile_memory.h"
#include "profiling/profiles.h"
#include "shm/array.h"
#include "shm/segment.h"

static struct profile profile_of(uint64_t buckets)
{
    struct profile profile = {.number = 1,
                              .state = LT_PROFILE_STOPPED,
                              .bucket_shift = 3,
                              .region_count = 1,
                              .interval = 10,
                              .bucket_count = buckets};
    profile.region[0] = (struct lt_profile_region){.start = 0x1000, .size = buckets * 8};
    strcpy(profile.name, "unit");
    return profile;
}

static void an_entry_says_what_the_profile_is(void)
{
    struct profile profile = profile_of(4);
    profile.source = LT_SOURCE_CYCLES;
    CHECK(profile_share(&profile));
    const struct lt_profile *entry = profile.shared;
    CHECK(array_at(&lt_shm->profiles, 0) == entry);
    CHECK_EQUAL(entry->seq % 2, 0);
    CHECK_EQUAL(entry->state, LT_PROFILE_STOPPED);
    CHECK_EQUAL(entry->source, LT_SOURCE_CYCLES);
    CHECK_EQUAL(entry->interval, 10);
    CHECK_EQUAL(entry->bucket_size, 8);
    CHECK_EQUAL(entry->bucket_count, 4);
    CHECK_EQUAL(entry->region[0].start, 0x1000);
    CHECK(shm_ptr(entry->counts) == (void *)profile.counts);
    CHECK(strcmp((const char *)entry->name, "unit") == 0);
    uint32_t seq = entry->seq;
    profile_unshare(&profile);
    CHECK_EQUAL(entry->state, LT_PROFILE_FREE);
    CHECK_EQUAL(entry->seq, seq + 2);
    CHECK(!profile.shared);
}

static void a_sample_counts_in_its_bucket(void)
{
    struct profile profile = profile_of(4);
    profile.region_count = 2;
    profile.bucket_count = 6;
    profile.first_bucket[1] = 4;
    profile.region[1] = (struct lt_profile_region){.start = 0x3000, .size = 9};
    CHECK(profile_share(&profile));
    static const uintptr_t inside[] = {0x1000, 0x1007, 0x1008, 0x101f, 0x3000, 0x3008};
    static const uintptr_t elsewhere[] = {0, 0xfff, 0x1020, 0x2fff, 0x3009, UINTPTR_MAX};
    static const uint64_t expected[] = {2, 1, 0, 1, 1, 1};
    for (unsigned i = 0; i < 6; i++) {
        profile_count(&profile, inside[i]);
        profile_count(&profile, elsewhere[i]);
    }
    for (unsigned i = 0; i < 6; i++)
        CHECK_EQUAL(profile.counts[i], expected[i]);
    CHECK_EQUAL(profile.shared->samples, 6);
    CHECK_EQUAL(profile.shared->elsewhere, 6);
    profile_unshare(&profile);
}

static void the_next_profile_begins_at_zero(void)
{
    struct profile profile = profile_of(4);
    CHECK(profile_share(&profile));
    struct lt_profile *entry = profile.shared;
    CHECK_EQUAL(lt_shm->profiles.count, 1);
    for (unsigned i = 0; i < 4; i++)
        CHECK_EQUAL(profile.counts[i], 0);
    CHECK_EQUAL(entry->samples + entry->elsewhere + entry->lost, 0);
    profile_unshare(&profile);
}

static void an_added_region_keeps_the_counts(void)
{
    struct profile profile = profile_of(500);
    CHECK(profile_share(&profile));
    const struct lt_profile *entry = profile.shared;
    profile.counts[499] = 7;
    profile.counts[500] = 9; /* left by an earlier profile */
    profile.bucket_count = 510;
    CHECK(profile_share(&profile));
    CHECK_EQUAL(profile.counts[499], 7);
    CHECK_EQUAL(profile.counts[500], 0);
    profile.bucket_count = 5000; /* needs a larger range */
    CHECK(profile_share(&profile));
    CHECK(profile.shared == entry);
    CHECK_EQUAL(entry->bucket_count, 5000);
    CHECK_EQUAL(profile.counts[499], 7);
    CHECK_EQUAL(profile.counts[4999], 0);
    profile_unshare(&profile);
}

/* A program may make and destroy profiles without end. */
static void memory_is_used_again(void)
{
    uint64_t used = 0;
    for (unsigned i = 0; i < 2000; i++) {
        struct profile small = profile_of(1 + i % 600), large = profile_of(1 + i * 37 % 20000);
        CHECK(profile_share(&small) && profile_share(&large));
        profile_unshare(&small);
        profile_unshare(&large);
        if (i == 999)
            used = lt_shm->used;
    }
    CHECK_EQUAL(lt_shm->used, used);
    CHECK(lt_shm->profiles.count <= 4);
}

static void the_largest_profile_fits_or_is_refused(void)
{
    struct profile profile = profile_of(LT_PROFILE_BUCKETS);
    if (profile_share(&profile)) {
        profile.counts[LT_PROFILE_BUCKETS - 1] = 1;
        profile_unshare(&profile);
    }
}

/* ---- files ---- */

__attribute__((noinline)) static int known_function(int value)
{
    __asm__ volatile("" : "+r"(value));
    return value + 1;
}

static void functions_are_found_by_address_and_name(void)
{
    uintptr_t start, by_name;
    size_t size, size_by_name;
    CHECK(known_function(1) == 2);
    CHECK(code_function_at((uintptr_t)known_function + 1, &start, &size));
    CHECK_EQUAL(start, (uintptr_t)known_function);
    CHECK(size > 0 && size < 4096);
    CHECK(code_function_named("known_function", &by_name, &size_by_name));
    CHECK_EQUAL(by_name, start);
    CHECK_EQUAL(size_by_name, size);
    CHECK(!code_function_named("known_functio", &start, &size));
    CHECK(!code_function_at((uintptr_t)&start, &start, &size));
    struct code_module module;
    CHECK(code_module_of(start, start + size, &module));
    CHECK(code_is_executable(start, start + size));
    CHECK(!code_is_executable((uintptr_t)&module, (uintptr_t)&module + 1));
    CHECK(!code_module_of((uintptr_t)&module, (uintptr_t)&module + 1, &module));
}

static uint32_t state = 1;

static uint32_t random_number(void)
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

static void read_name(const struct elf_function *function, void *length)
{
    *(size_t *)length += strlen(function->name);
}

/* Damages this program's file at random: no damage may end the process. */
static void damaged_files_do_no_harm(void)
{
    static uint8_t whole[1 << 22], copy[1 << 22];
    const char *path = "unit-profiles-damaged";
    int fd = open("/proc/self/exe", O_RDONLY);
    ssize_t size = read(fd, whole, sizeof whole);
    close(fd);
    CHECK(size > 4096);
    for (int round = 0; round < 300; round++) {
        memcpy(copy, whole, (size_t)size);
        size_t length = round % 3 ? (size_t)size : random_number() % (size_t)size;
        size_t sections = (size_t)size - *(const uint64_t *)(whole + 40);
        for (int i = 0; i < 20; i++) {
            size_t offset =
                i % 2 ? random_number() % 64 : (size_t)size - 1 - random_number() % sections;
            copy[offset] = (uint8_t)random_number();
        }
        memcpy(copy, whole, round % 2 ? 16 : 0);
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        CHECK(write(fd, copy, length) == (ssize_t)length);
        close(fd);
        elf_functions_read(path, read_name, &(size_t){0});
    }
    unlink(path);
    CHECK(!elf_functions_read(path, read_name, &(size_t){0}));
    CHECK(!elf_functions_read("/", read_name, &(size_t){0}));
    CHECK(!elf_functions_read("/dev/null", read_name, &(size_t){0}));
}

int main(void)
{
    CHECK(watched());
    an_entry_says_what_the_profile_is();
    a_sample_counts_in_its_bucket();
    the_next_profile_begins_at_zero();
    an_added_region_keeps_the_counts();
    memory_is_used_again();
    the_largest_profile_fits_or_is_refused();
    functions_are_found_by_address_and_name();
    damaged_files_do_no_harm();
    return 0;
}
