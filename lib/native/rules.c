/*
 * Call frame instructions (DWARF 5, 6.4.2) that libunwind before 1.8 does not know: on AArch64 the one that says
 * that return addresses are signed from here on (DWARF for the Arm 64-bit Architecture, 4.4).  It refuses the
 * whole function then.  Signatures are taken off where words are read (unwind.c), so it may read a no-op there.
 */
#include <string.h>

#include "native/step.h"

#define RULES_MAX 4096 /* bytes of one function's */

enum { CFA_NOP = 0x00, CFA_LAST = 0x2f };

/* Their operands: u, a LEB128; b, a block behind its length; a number, so many bytes.  NULL: not known, or of a
 * length that stands elsewhere (DW_CFA_set_loc). */
static const char *const operands[CFA_LAST + 1] = {
    [CFA_NOP] = "", [0x02] = "1",  [0x03] = "2",  [0x04] = "4",  [0x05] = "uu",
    [0x06] = "u",   [0x07] = "u",  [0x08] = "u",  [0x09] = "uu", [0x0a] = "",
    [0x0b] = "",    [0x0c] = "uu", [0x0d] = "u",  [0x0e] = "u",  [0x0f] = "b",
    [0x10] = "ub",  [0x11] = "uu", [0x12] = "uu", [0x13] = "u",  [0x14] = "uu",
    [0x15] = "uu",  [0x16] = "ub", [0x2d] = "",   [0x2e] = "u",  [0x2f] = "uu",
};

/* False: it goes on behind the end. */
static bool leb128(const uint8_t *bytes, size_t len, size_t *at, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; *at < len; shift += 7) {
        uint8_t byte = bytes[(*at)++];
        if (shift < 64)
            *value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

static bool skip_operands(const char *kinds, const uint8_t *bytes, size_t len, size_t *at)
{
    for (; kinds && *kinds; kinds++) {
        uint64_t n = (uint64_t)(*kinds - '0');
        if ((*kinds == 'u' || *kinds == 'b') && !leb128(bytes, len, at, &n))
            return false;
        if (*kinds == 'u')
            continue;
        if (n > len - *at)
            return false;
        *at += (size_t)n;
    }
    return kinds != NULL;
}

void prb_unwind_rules_note(struct prb_unwinder *u, prb_addr start, prb_addr end)
{
    uint8_t bytes[RULES_MAX];
    if (!u->arch->signing_rule || end <= start || end - start > sizeof bytes ||
        !prb_unwinder_read(u, start, bytes, end - start))
        return;
    size_t len = end - start;
    for (size_t at = 0; at < len && u->unknown_rules < PRB_UNKNOWN_RULES;) {
        uint8_t rule = bytes[at++];
        if (rule == u->arch->signing_rule)
            u->unknown_rule[u->unknown_rules++] = start + at - 1;
        /* The upper two bits are an instruction with an operand in the others. */
        const char *kinds = rule >> 6 == 2     ? "u"
                            : rule >> 6        ? ""
                            : rule <= CFA_LAST ? operands[rule]
                                               : NULL;
        if (!skip_operands(kinds, bytes, len, &at))
            return;
    }
}

void prb_unwind_rules_hide(const struct prb_unwinder *u, prb_addr addr, uint64_t *word)
{
    for (unsigned i = 0; i < u->unknown_rules; i++)
        if (u->unknown_rule[i] - addr < sizeof *word)
            memset((uint8_t *)word + (u->unknown_rule[i] - addr), CFA_NOP, 1);
}
