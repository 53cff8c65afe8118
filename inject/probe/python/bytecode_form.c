/* The form of byte code: see bytecode_form.h.  Nothing here knows what is in the bytes. */
#include "inject/probe/python/bytecode_form.h"

#include <string.h>

#include "inject/probe/python/sources.h"

#define FNV_BASIS 0xcbf29ce484222325u
#define FNV_PRIME 0x100000001b3u
#define UNCHECKED (offsetof(struct prb_bytecode_head, build)) /* mark and check */

uint64_t prb_bytecode_hash(uint64_t before, const void *data, size_t len)
{
    uint64_t hash = before ? before : FNV_BASIS, word;
    const uint8_t *at = data;
    for (; len >= sizeof word; at += sizeof word, len -= sizeof word) {
        memcpy(&word, at, sizeof word);
        hash = (hash ^ word) * FNV_PRIME;
        hash ^= hash >> 32; /* the upper bits of a word reach the lower ones of the hash, too */
    }
    for (; len; len--)
        hash = (hash ^ *at++) * FNV_PRIME;
    return hash;
}

uint64_t prb_bytecode_build(void)
{
    uint64_t hash = 0;
    for (const struct prb_py_source *one = prb_py_sources; one->name; one++) {
        hash = prb_bytecode_hash(hash, one->file, strlen(one->file) + 1);
        hash = prb_bytecode_hash(hash, one->text, one->len + 1);
    }
    return hash;
}

void prb_bytecode_seal(char *blob, size_t len)
{
    struct prb_bytecode_head head;
    memcpy(&head, blob, sizeof head);
    memcpy(head.mark, PRB_BYTECODE_MARK, sizeof head.mark);
    head.build = prb_bytecode_build();
    memcpy(blob, &head, sizeof head);
    head.check = prb_bytecode_hash(0, blob + UNCHECKED, len - UNCHECKED);
    memcpy(blob, &head, sizeof head);
}

/* Whether the records fill the bytes behind the version. */
static bool is_whole(const char *at, size_t left)
{
    for (const struct prb_py_source *one = prb_py_sources; one->name; one++) {
        uint32_t len;
        if (left < sizeof len)
            return false;
        memcpy(&len, at, sizeof len);
        at += sizeof len, left -= sizeof len;
        if (left < len)
            return false;
        at += len, left -= len;
    }
    return left == 0;
}

bool prb_bytecode_sound(const char *blob, size_t len)
{
    struct prb_bytecode_head head;
    if (len < sizeof head || len > PRB_BYTECODE_MAX)
        return false;
    memcpy(&head, blob, sizeof head);
    return memcmp(head.mark, PRB_BYTECODE_MARK, sizeof head.mark) == 0 &&
           head.version_len <= len - sizeof head &&
           head.check == prb_bytecode_hash(0, blob + UNCHECKED, len - UNCHECKED) &&
           head.build == prb_bytecode_build() &&
           is_whole(blob + sizeof head + head.version_len, len - sizeof head - head.version_len);
}

const char *prb_bytecode_version(const char *blob, size_t *len_out)
{
    struct prb_bytecode_head head;
    memcpy(&head, blob, sizeof head);
    *len_out = head.version_len;
    return blob + sizeof head;
}

const char *prb_bytecode_find(const char *blob, const char *file, size_t *len_out)
{
    size_t version_len;
    const char *at = prb_bytecode_version(blob, &version_len) + version_len;
    for (const struct prb_py_source *one = prb_py_sources; one->name; one++) {
        uint32_t len;
        memcpy(&len, at, sizeof len);
        at += sizeof len;
        if (strcmp(one->file, file) == 0) {
            *len_out = len;
            return len ? at : NULL;
        }
        at += len;
    }
    return NULL;
}
