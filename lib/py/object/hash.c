/*
 * Hashes of str: SipHash under a key that the interpreter draws when it starts, _Py_HashSecret.  With one
 * compression round from 3.11 on, with two before (Python/pyhash.c); an interpreter that was built with another
 * hash is walked.  SipHash: Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012.
 */
#include <endian.h>
#include <string.h>

#include "py/object/reader.h"

static uint64_t rotated(uint64_t word, unsigned bits) { return word << bits | word >> (64 - bits); }

static void rounds(uint64_t v[4], unsigned count)
{
    for (; count; count--) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = rotated(v[1], 13) ^ v[0];
        v[3] = rotated(v[3], 16) ^ v[2];
        v[0] = rotated(v[0], 32);
        v[2] += v[1];
        v[0] += v[3];
        v[1] = rotated(v[1], 17) ^ v[2];
        v[3] = rotated(v[3], 21) ^ v[0];
        v[2] = rotated(v[2], 32);
    }
}

static uint64_t siphash(const uint64_t key[2], const char *text, size_t len, unsigned compression,
                        unsigned finalization)
{
    uint64_t v[4] = {key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d,
                     key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573};
    for (size_t at = 0; at <= len; at += 8) {
        uint64_t word = 0;
        memcpy(&word, text + at, len - at < 8 ? len - at : 8);
        word = le64toh(word);
        if (len - at < 8)
            word |= (uint64_t)len << 56;
        v[3] ^= word;
        rounds(v, compression);
        v[0] ^= word;
    }
    v[2] ^= 0xff;
    rounds(v, finalization);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static bool secret_known(struct prb_objects *objects)
{
    if (!objects->secret_tried) {
        prb_addr at = prb_py_hash_secret(objects->py);
        objects->secret_tried = true;
        objects->secret_known = at && prb_objects_words(objects, at, objects->secret, 2);
    }
    return objects->secret_known;
}

size_t prb_str_hashes(struct prb_objects *objects, const char *text, uint64_t out[PRB_STR_HASHES])
{
    static const unsigned compressions[PRB_STR_HASHES] = {1, 2}, finalizations[] = {3, 4};
    size_t len = strlen(text);
    for (size_t i = 0; i < len; i++)
        if (text[i] & 0x80)
            return 0; /* CPython hashes the characters as it stores them, not UTF-8 */
    if (!len || !secret_known(objects))
        return 0;
    for (size_t i = 0; i < PRB_STR_HASHES; i++) {
        out[i] = siphash(objects->secret, text, len, compressions[i], finalizations[i]);
        out[i] -= out[i] == UINT64_MAX; /* -1 says that there is none */
    }
    return PRB_STR_HASHES;
}
