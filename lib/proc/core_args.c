/*
 * Arguments and environment of a core, from the main thread's stack: the notes keep 80 bytes of the
 * command line and nothing of the environment.
 *
 * The kernel lays out, upwards: argc, argv pointers, 0, environment pointers, 0, the auxiliary
 * vector, some bytes among them AT_RANDOM's, the strings of both, and AT_EXECFN's (fs/binfmt_elf.c,
 * create_elf_tables).  The vector's contents stand in a note, so it is found in memory by them.
 */
#include <elf.h>
#include <string.h>

#include "proc/core_file.h"

/* Between the vector and the bytes of AT_RANDOM: padding and the platform's name. */
#define GAP_MAX 1024
#define POINTERS_MAX 65536
#define STRINGS_MAX (4u << 20)

static bool word(struct prb_mem *mem, prb_addr addr, uint64_t *out)
{
    return prb_mem_core_read_own(mem, addr, out, sizeof *out) == sizeof *out;
}

static prb_addr find_vector(const struct prb_core_file *core, struct prb_mem *mem)
{
    prb_addr end = prb_core_auxv(core, AT_RANDOM);
    uint8_t window[GAP_MAX + 1024];
    if (!core->auxv || core->auxv_len < 32 || core->auxv_len > 1024 || end < sizeof window)
        return 0;
    prb_addr start = (end - sizeof window) & ~(prb_addr)7;
    size_t len = prb_mem_core_read_own(mem, start, window, sizeof window);
    for (size_t at = 0; at + core->auxv_len <= len; at += 8) {
        if (memcmp(window + at, core->auxv, core->auxv_len) == 0)
            return start + at;
    }
    return 0;
}

/* Go down from *at over pointers to a 0 (or, for the arguments, to their number).  *lowest_out: the
 * last pointer seen. */
static bool go_down(struct prb_mem *mem, prb_addr *at, bool counted, uint64_t *lowest_out)
{
    uint64_t value, lowest = 0;
    for (uint64_t count = 0; count < POINTERS_MAX; count++) {
        *at -= 8;
        if (!word(mem, *at, &value))
            return false;
        if (counted ? value == count : value == 0) {
            *lowest_out = lowest;
            return true;
        }
        lowest = value;
    }
    return false;
}

static bool copy_strings(struct prb_mem *mem, prb_addr start, prb_addr end, struct prb_buf *out)
{
    if (start == 0 || end <= start || end - start > STRINGS_MAX)
        return false;
    size_t len = (size_t)(end - start);
    char *room = prb_buf_reserve(out, len);
    if (!room || prb_mem_core_read_own(mem, start, room, len) != len)
        return false;
    out->len += len;
    out->data[out->len] = '\0';
    return true;
}

bool prb_core_arguments(const struct prb_core_file *core, struct prb_mem *mem,
                        struct prb_buf *arguments, struct prb_buf *environment)
{
    prb_addr at = find_vector(core, mem), execfn = prb_core_auxv(core, AT_EXECFN);
    uint64_t first_argument, first_variable, zero;
    /* Below the vector: the 0 that ends the environment, and below its pointers the one that ends
     * the arguments. */
    if (!at || !word(mem, at - 8, &zero) || zero)
        return false;
    at -= 8;
    if (!go_down(mem, &at, false, &first_variable) || !go_down(mem, &at, true, &first_argument))
        return false;
    prb_addr end = first_variable ? first_variable : execfn;
    if (!copy_strings(mem, first_argument, end, arguments))
        return false;
    return !first_variable || copy_strings(mem, first_variable, execfn, environment);
}
