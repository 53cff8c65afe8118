/*
 * Packed cores, unpacked to a file without a name, as cores are read at random places.  The
 * libraries are opened when one is met (base/lazy.h); built without one's headers, its files are
 * refused with the command that unpacks them.
 */
#include "proc/unpack.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/dlopen_note.h"
#include "base/lazy.h"
#include "base/progress.h"
#include "config.h"

#define INPUT (128u << 10)               /* bytes read at once */
#define OUTPUT (512u << 10)              /* bytes made at once */
#define HOLE 4096                        /* so many zeros are not written */
#define UNPACKED_MAX (UINT64_C(1) << 40) /* bytes */

/* One step: eats from in, makes out. */
struct step {
    const uint8_t *in;
    size_t in_len;
    uint8_t *out;
    size_t room, made;
    bool last; /* nothing comes behind in */
};

struct method {
    const char *magic, *name, *command;
    struct prb_lazy *library;                     /* NULL: built without */
    void *(*begin)(void);                         /* NULL: out of memory */
    bool (*step)(void *state, struct step *step); /* false: no more comes out */
    void (*end)(void *state);
};

#define LIBRARY(soname_, functions_, names_)                                                       \
    {.soname = soname_,                                                                            \
     .names = names_,                                                                              \
     .functions = &functions_,                                                                     \
     .count = sizeof names_ / sizeof *names_}

/* ---- zstd ---- */

#ifdef PRB_SONAME_ZSTD
#include <zstd.h>
#define ZSTD_FUNCTIONS(F)                                                                          \
    F(ZSTD_createDCtx) F(ZSTD_decompressStream) F(ZSTD_isError) F(ZSTD_freeDCtx)
static struct {
    ZSTD_FUNCTIONS(PRB_LAZY_POINTER)
} zstd;
static const char *const zstd_names[] = {ZSTD_FUNCTIONS(PRB_LAZY_NAME)};
PRB_DLOPEN_NOTE(zstd, PRB_SONAME_ZSTD, "recommended", "the store, and packed core files");
static struct prb_lazy zstd_library = LIBRARY(PRB_SONAME_ZSTD, zstd, zstd_names);

static void *zstd_begin(void) { return zstd.ZSTD_createDCtx(); }

static bool zstd_step(void *state, struct step *step)
{
    ZSTD_inBuffer in = {step->in, step->in_len, 0};
    ZSTD_outBuffer out = {step->out, step->room, 0};
    size_t left = zstd.ZSTD_decompressStream(state, &out, &in);
    step->in += in.pos;
    step->in_len -= in.pos;
    step->made = out.pos;
    return !zstd.ZSTD_isError(left);
}

static void zstd_end(void *state) { zstd.ZSTD_freeDCtx(state); }
#define ZSTD_METHOD &zstd_library, zstd_begin, zstd_step, zstd_end
#else
#define ZSTD_METHOD NULL, NULL, NULL, NULL
#endif

/* ---- lz4 ---- */

#ifdef PRB_SONAME_LZ4
#include <lz4frame.h>
#define LZ4_FUNCTIONS(F)                                                                           \
    F(LZ4F_createDecompressionContext)                                                             \
    F(LZ4F_decompress) F(LZ4F_isError) F(LZ4F_freeDecompressionContext)
static struct {
    LZ4_FUNCTIONS(PRB_LAZY_POINTER)
} lz4;
static const char *const lz4_names[] = {LZ4_FUNCTIONS(PRB_LAZY_NAME)};
PRB_DLOPEN_NOTE(lz4, PRB_SONAME_LZ4, "recommended", "core files packed by lz4");
static struct prb_lazy lz4_library = LIBRARY(PRB_SONAME_LZ4, lz4, lz4_names);

static void *lz4_begin(void)
{
    LZ4F_dctx *context;
    return lz4.LZ4F_isError(lz4.LZ4F_createDecompressionContext(&context, LZ4F_VERSION)) ? NULL
                                                                                         : context;
}

static bool lz4_step(void *state, struct step *step)
{
    size_t ate = step->in_len, made = step->room;
    size_t hint = lz4.LZ4F_decompress(state, step->out, &made, step->in, &ate, NULL);
    if (lz4.LZ4F_isError(hint))
        return false;
    step->in += ate;
    step->in_len -= ate;
    step->made = made;
    return true;
}

static void lz4_end(void *state) { lz4.LZ4F_freeDecompressionContext(state); }
#define LZ4_METHOD &lz4_library, lz4_begin, lz4_step, lz4_end
#else
#define LZ4_METHOD NULL, NULL, NULL, NULL
#endif

/* ---- xz ---- */

#ifdef PRB_SONAME_LZMA
#include <lzma.h>
#define LZMA_FUNCTIONS(F) F(lzma_stream_decoder) F(lzma_code) F(lzma_end)
#define LZMA_MEMORY (UINT64_C(1) << 30) /* bytes that a file may make it use */
static struct {
    LZMA_FUNCTIONS(PRB_LAZY_POINTER)
} lzma;
static const char *const lzma_names[] = {LZMA_FUNCTIONS(PRB_LAZY_NAME)};
PRB_DLOPEN_NOTE(lzma, PRB_SONAME_LZMA, "recommended", "core files packed by xz");
static struct prb_lazy lzma_library = LIBRARY(PRB_SONAME_LZMA, lzma, lzma_names);

static void *xz_begin(void)
{
    PRB_AUTO_FREE lzma_stream *stream = calloc(1, sizeof *stream); /* as LZMA_STREAM_INIT */
    if (!stream || lzma.lzma_stream_decoder(stream, LZMA_MEMORY, LZMA_CONCATENATED) != LZMA_OK)
        return NULL;
    return PRB_STEAL(stream);
}

static bool xz_step(void *state, struct step *step)
{
    lzma_stream *stream = state;
    stream->next_in = step->in;
    stream->avail_in = step->in_len;
    stream->next_out = step->out;
    stream->avail_out = step->room;
    lzma_ret told = lzma.lzma_code(stream, step->last ? LZMA_FINISH : LZMA_RUN);
    step->in = stream->next_in;
    step->in_len = stream->avail_in;
    step->made = step->room - stream->avail_out;
    return told == LZMA_OK;
}

static void xz_end(void *state)
{
    lzma.lzma_end(state);
    free(state);
}
#define XZ_METHOD &lzma_library, xz_begin, xz_step, xz_end
#else
#define XZ_METHOD NULL, NULL, NULL, NULL
#endif

/* ---- gzip ---- */

#ifdef PRB_SONAME_ZLIB
#define ZLIB_CONST
#include <zlib.h>
#define ZLIB_FUNCTIONS(F) F(inflateInit2_) F(inflate) F(inflateReset) F(inflateEnd)
static struct {
    ZLIB_FUNCTIONS(PRB_LAZY_POINTER)
} zlib;
static const char *const zlib_names[] = {ZLIB_FUNCTIONS(PRB_LAZY_NAME)};
PRB_DLOPEN_NOTE(zlib, PRB_SONAME_ZLIB, "recommended", "core files packed by gzip");
static struct prb_lazy zlib_library = LIBRARY(PRB_SONAME_ZLIB, zlib, zlib_names);

static void *gzip_begin(void)
{
    PRB_AUTO_FREE z_stream *stream = calloc(1, sizeof *stream);
    if (!stream || zlib.inflateInit2_(stream, 16 + MAX_WBITS, ZLIB_VERSION, (int)sizeof *stream))
        return NULL;
    return PRB_STEAL(stream);
}

static bool gzip_step(void *state, struct step *step)
{
    z_stream *stream = state;
    stream->next_in = step->in;
    stream->avail_in = (uInt)step->in_len;
    stream->next_out = step->out;
    stream->avail_out = (uInt)step->room;
    int told = zlib.inflate(stream, Z_NO_FLUSH);
    step->in = stream->next_in;
    step->in_len = stream->avail_in;
    step->made = step->room - stream->avail_out;
    if (told == Z_STREAM_END) /* another one may follow */
        told = zlib.inflateReset(stream);
    return told == Z_OK || told == Z_BUF_ERROR;
}

static void gzip_end(void *state)
{
    zlib.inflateEnd(state);
    free(state);
}
#define GZIP_METHOD &zlib_library, gzip_begin, gzip_step, gzip_end
#else
#define GZIP_METHOD NULL, NULL, NULL, NULL
#endif

/* ---- files ---- */

static const struct method methods[] = {
    {"\x28\xb5\x2f\xfd", "zstd", "unzstd", ZSTD_METHOD},
    {"\x04\x22\x4d\x18", "lz4", "unlz4", LZ4_METHOD},
    {"\xfd\x37zXZ", "xz", "unxz", XZ_METHOD},
    {"\x1f\x8b", "gzip", "gunzip", GZIP_METHOD},
};

static const struct method *method_of(const void *head)
{
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (memcmp(head, methods[i].magic, strlen(methods[i].magic)) == 0)
            return &methods[i];
    return NULL;
}

const char *prb_packing(const void *head)
{
    const struct method *method = method_of(head);
    return method ? method->name : NULL;
}

static int nameless_file(void)
{
    const char *named = getenv("TMPDIR");
    const char *const folders[] = {named && named[0] == '/' ? named : "/var/tmp", "/var/tmp",
                                   "/tmp"};
    int fd = -1;
    for (size_t i = 0; i < 3 && fd < 0; i++)
        fd = open(folders[i], O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    return fd;
}

struct file {
    int fd;
    uint64_t size, room; /* room: bytes that may be written still */
};

/* A small file may unpack to any number of bytes: a tenth of the free space is left to others that
 * write to the disk, such as the job. */
static uint64_t room_of(int fd)
{
    struct statvfs info;
    return fstatvfs(fd, &info) == 0 ? (uint64_t)info.f_bavail * info.f_frsize / 10 * 9 : 0;
}

static bool is_zero(const uint8_t *bytes, size_t len)
{
    return len && bytes[0] == 0 && memcmp(bytes, bytes + 1, len - 1) == 0;
}

static bool put(struct file *file, const uint8_t *bytes, size_t len)
{
    for (size_t done = 0; done < len;) {
        size_t piece = HOLE - (file->size + done) % HOLE;
        piece = piece < len - done ? piece : len - done;
        if (is_zero(bytes + done, piece)) {
            done += piece;
            continue;
        }
        if (piece > file->room) {
            errno = ENOSPC;
            return false;
        }
        ssize_t n = pwrite(file->fd, bytes + done, piece, (off_t)(file->size + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        done += (size_t)n;
        file->room -= (size_t)n;
    }
    file->size += len;
    errno = EFBIG;
    return file->size <= UNPACKED_MAX;
}

/* False: the new file cannot be written; errno says why. */
static bool unpack_all(const struct method *method, void *state, int in, uint8_t *buffer,
                       struct file *out)
{
    struct step step = {.out = buffer + INPUT, .room = OUTPUT};
    for (bool good = true; good;) {
        if (step.in_len == 0 && !step.last) {
            ssize_t n = read(in, buffer, INPUT);
            if (n < 0 && errno == EINTR)
                continue;
            step.in = buffer;
            step.in_len = n > 0 ? (size_t)n : 0;
            step.last = n <= 0;
        }
        size_t before = step.in_len;
        step.made = 0;
        good = method->step(state, &step);
        if (out->size == 0 && step.made >= SELFMAG && memcmp(step.out, ELFMAG, SELFMAG) != 0)
            return true; /* no core: nothing of it is wanted */
        if (!put(out, step.out, step.made))
            return false;
        prb_progress("bytes unpacked", (uint64_t)out->size);
        bool still = step.in_len == before && step.made == 0;
        good = good && !(still && (before || step.last));
    }
    return ftruncate(out->fd, (off_t)out->size) == 0;
}

static int refuse(const struct method *method, const char *path, struct prb_error *err)
{
    prb_fail(err, PRB_UNSUPPORTED, "%s is packed (%s)", path, method->name);
    prb_error_remedy(err, "Unpack it first: %s %s", method->command, path);
    return -1;
}

int prb_unpack(int fd, const char *path, struct prb_error *err)
{
    char head[6] = {0};
    struct stat info;
    const struct method *method =
        pread(fd, head, sizeof head, 0) > 0 && fstat(fd, &info) == 0 ? method_of(head) : NULL;
    if (!method || !method->library || !prb_lazy_open(method->library, NULL))
        return refuse(method ? method : &methods[0], path, err);
    PRB_AUTO_FREE uint8_t *buffer = malloc(INPUT + OUTPUT);
    void *state = buffer ? method->begin() : NULL;
    if (!state) {
        prb_nomem(err);
        return -1;
    }
    PRB_AUTO_FD int made = nameless_file();
    struct file file = {made, 0, made >= 0 ? room_of(made) : 0};
    bool good = made >= 0 && unpack_all(method, state, fd, buffer, &file);
    int sys = errno;
    prb_progress(NULL, 0);
    method->end(state);
    if (!good) {
        prb_fail_sys(err, sys, "%s cannot be unpacked", path);
        prb_error_remedy(err, "TMPDIR names a folder with room, or: %s %s", method->command, path);
        return -1;
    }
    if (file.size == 0) {
        prb_fail(err, PRB_CORRUPT, "%s is damaged: it is not a core packed by %s", path,
                 method->name);
        return -1;
    }
    futimens(made, (struct timespec[]){info.st_atim, info.st_mtim});
    int result = made;
    made = -1;
    return result;
}
