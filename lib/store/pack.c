#include "store/pack.h"

#include <stdlib.h>
#include <string.h>

#include "base/lazy.h"
#include "config.h"

#define LEVEL 1
#define HASH_LOG 12 /* 16 KiB instead of 128 to clear for each column, for 0.03 % more bytes */

#ifdef PRB_SONAME_ZSTD
#include <zstd.h>
#define FUNCTIONS(F)                                                                               \
    F(ZSTD_createCCtx)                                                                             \
    F(ZSTD_freeCCtx)                                                                               \
    F(ZSTD_CCtx_setParameter)                                                                      \
    F(ZSTD_compress2)                                                                              \
    F(ZSTD_compressBound)                                                                          \
    F(ZSTD_createDCtx)                                                                             \
    F(ZSTD_freeDCtx)                                                                               \
    F(ZSTD_decompressDCtx)                                                                         \
    F(ZSTD_isError)
static struct {
    FUNCTIONS(PRB_LAZY_POINTER)
} zstd;
static const char *const names[] = {FUNCTIONS(PRB_LAZY_NAME)};
static struct prb_lazy library = {.soname = PRB_SONAME_ZSTD,
                                  .names = names,
                                  .functions = &zstd,
                                  .count = sizeof names / sizeof *names};

struct prb_packer {
    bool can;
    ZSTD_CCtx *in;
    ZSTD_DCtx *out;
    struct prb_buf trial;
};

struct prb_packer *prb_packer_new(struct prb_error *err)
{
    struct prb_packer *packer = calloc(1, sizeof *packer);
    if (!packer)
        return PRB_NULL(prb_nomem(err));
    packer->can = prb_lazy_open(&library, NULL);
    return packer;
}

void prb_packer_free(struct prb_packer *packer)
{
    if (!packer)
        return;
    if (packer->in)
        zstd.ZSTD_freeCCtx(packer->in);
    if (packer->out)
        zstd.ZSTD_freeDCtx(packer->out);
    prb_buf_deinit(&packer->trial);
    free(packer);
}

static ZSTD_CCtx *make(void)
{
    ZSTD_CCtx *made = zstd.ZSTD_createCCtx();
    if (made) {
        zstd.ZSTD_CCtx_setParameter(made, ZSTD_c_compressionLevel, LEVEL);
        zstd.ZSTD_CCtx_setParameter(made, ZSTD_c_hashLog, HASH_LOG);
    }
    return made;
}

/* Append the packed form; its length, 0: it is no smaller, or cannot be made. */
static size_t pack(struct prb_packer *packer, const void *data, size_t len, struct prb_buf *out)
{
    if (!packer->can || !len || (!packer->in && !(packer->in = make())))
        return 0;
    size_t room = zstd.ZSTD_compressBound(len);
    char *to = prb_buf_reserve(out, room);
    if (!to)
        return 0;
    size_t made = zstd.ZSTD_compress2(packer->in, to, room, data, len);
    if (zstd.ZSTD_isError(made) || made >= len)
        return 0;
    out->len += made;
    return made;
}

static bool unpack(struct prb_packer *packer, const void *stored, size_t stored_len, void *out,
                   size_t len, struct prb_error *err)
{
    if (!packer->can)
        return prb_lazy_open(&library, err);
    if (!packer->out && !(packer->out = zstd.ZSTD_createDCtx()))
        return prb_nomem(err);
    size_t made = zstd.ZSTD_decompressDCtx(packer->out, out, len, stored, stored_len);
    return (!zstd.ZSTD_isError(made) && made == len) ||
           prb_fail(err, PRB_CORRUPT, "a packed part of a chunk cannot be unpacked");
}
#else
struct prb_packer {
    struct prb_buf trial;
};

struct prb_packer *prb_packer_new(struct prb_error *err)
{
    struct prb_packer *packer = calloc(1, sizeof *packer);
    return packer ? packer : PRB_NULL(prb_nomem(err));
}

void prb_packer_free(struct prb_packer *packer) { free(packer); }

static size_t pack(struct prb_packer *packer, const void *data, size_t len, struct prb_buf *out)
{
    (void)packer, (void)data, (void)len, (void)out;
    return 0;
}

static bool unpack(struct prb_packer *packer, const void *stored, size_t stored_len, void *out,
                   size_t len, struct prb_error *err)
{
    (void)packer, (void)stored, (void)stored_len, (void)out, (void)len;
    return prb_fail(err, PRB_UNSUPPORTED,
                    "the chunk is packed by zstd, without which this was built");
}
#endif

bool prb_store_pack(struct prb_packer *packer, const void *data, size_t len, struct prb_buf *out,
                    bool *packed_out)
{
    *packed_out = pack(packer, data, len, out) > 0;
    if (!*packed_out && len)
        prb_buf_add(out, data, len);
    return prb_buf_ok(out);
}

size_t prb_store_packed_size(struct prb_packer *packer, const void *data, size_t len)
{
    packer->trial.len = 0;
    size_t made = pack(packer, data, len, &packer->trial);
    return made ? made : len;
}

bool prb_store_unpack(struct prb_packer *packer, bool packed, const void *stored, size_t stored_len,
                      void *out, size_t len, struct prb_error *err)
{
    if (packed)
        return unpack(packer, stored, stored_len, out, len, err);
    if (stored_len != len)
        return prb_fail(err, PRB_CORRUPT, "a part of a chunk has %zu bytes instead of %zu",
                        stored_len, len);
    memcpy(out, stored, len);
    return true;
}
