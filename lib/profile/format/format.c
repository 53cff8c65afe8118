/* The table of formats; and files, which replace the old one only when they are whole (format.h).
 */
#include "profile/format/format.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/new_file.h"
#include "base/words.h"

static const struct prb_profile_format *const formats[] = {
#define FORMAT(name) &prb_format_##name.description,
#include "profile/format/formats.inc"
#undef FORMAT
    NULL,
};

const struct prb_profile_format *const *prb_profile_formats(void) { return formats; }

static bool choice_at(size_t index, struct prb_words_choice *out)
{
    const struct prb_profile_format *format = formats[index];
    if (format)
        *out = (struct prb_words_choice){format->name, format->aliases, format->suffixes};
    return format;
}

const struct prb_profile_format *prb_profile_format_find(const char *name)
{
    return formats[prb_words_choose(choice_at, name)];
}

const struct prb_profile_format *prb_profile_format_of_file(const char *path)
{
    return formats[prb_words_choose_for_file(choice_at, path)];
}

/* ---- files ---- */

/* A pipe or a device is written to; otherwise a new file replaces the old one. */
static bool is_special(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode);
}

static void beside_name(const char *path, char *out, size_t cap)
{
    snprintf(out, cap, "%s.%d.new", path, (int)getpid());
}

/* The file must be new: in a folder that others may write to, the name may be a link that somebody
 * planted. */
static int make_new(const char *path)
{
    unlink(path);
    return open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
}

bool prb_profile_check_output(const char *path, struct prb_error *err)
{
    struct stat st;
    if (strcmp(path, "-") == 0)
        return true;
    if (!*prb_base_name(path) || strlen(path) >= PATH_MAX - 16)
        return prb_fail(err, PRB_USAGE, "\"%s\" is not a file name", path);
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return prb_fail(err, PRB_USAGE, "%s is a folder", path);
    if (access(path, F_OK) == 0 && access(path, W_OK) != 0)
        return prb_fail_sys(err, errno, "%s cannot be written", path);
    if (is_special(path))
        return true;
    /* Make the new file for a moment: no other test works on every file system. */
    PRB_AUTO(prb_new_file) struct prb_new_file file;
    return prb_new_file_begin(&file, path, 0666) ||
           prb_fail_sys(err, errno, "%s cannot be written", path);
}

static bool flush(FILE *out, const char *path, struct prb_error *err)
{
    if (fflush(out) != 0 || ferror(out))
        return prb_fail_sys(err, errno ? errno : EIO, "%s", path);
    return true;
}

static bool write_stream(const struct prb_format *format, const struct prb_profile *profile,
                         const struct prb_profile_style *style, FILE *opened, const char *path,
                         struct prb_error *err)
{
    PRB_AUTO(file) FILE *out = opened;
    if (!out)
        return prb_fail_sys(err, errno, "%s", path);
    return format->write(profile, style, out, err) && flush(out, path, err) &&
           (is_special(path) || fsync(fileno(out)) == 0 || prb_fail_sys(err, errno, "%s", path));
}

/* For a format that writes a file by name: write beside the old file, then replace it. */
static bool write_beside(const struct prb_format *format, const struct prb_profile *profile,
                         const struct prb_profile_style *style, const char *path,
                         struct prb_error *err)
{
    char beside[PATH_MAX];
    beside_name(path, beside, sizeof beside);
    int fd = make_new(beside);
    if (fd < 0)
        return prb_fail_sys(err, errno, "%s", path);
    close(fd);
    bool ok = format->write_file(profile, style, beside, err);
    if (ok && rename(beside, path) != 0)
        ok = prb_fail_sys(err, errno, "%s", path);
    if (!ok)
        unlink(beside);
    return ok;
}

static bool write_place(const struct prb_format *format, const struct prb_profile *profile,
                        const struct prb_profile_style *style, const char *path,
                        struct prb_error *err)
{
    if (format->write_file)
        return write_beside(format, profile, style, path, err);
    PRB_AUTO(prb_new_file) struct prb_new_file file;
    if (!prb_new_file_begin(&file, path, 0666))
        return prb_fail_sys(err, errno, "%s", path);
    int copy = fcntl(file.fd, F_DUPFD_CLOEXEC, 3);
    return write_stream(format, profile, style, copy < 0 ? NULL : fdopen(copy, "w"), path, err) &&
           (prb_new_file_end(&file) || prb_fail_sys(err, errno, "%s", path));
}

static bool write_elsewhere(const struct prb_format *format, const struct prb_profile *profile,
                            const struct prb_profile_style *style, const char *path, char *out,
                            size_t cap)
{
    const char *const folders[] = {getenv("TMPDIR"), "/var/tmp", "/tmp", "/dev/shm"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        if (!folders[i] || !*folders[i])
            continue;
        snprintf(out, cap, "%s/%d-%s", folders[i], (int)getpid(), prb_base_name(path));
        if (access(out, F_OK) != 0 && write_place(format, profile, style, out, NULL))
            return true;
    }
    return false;
}

bool prb_profile_write(const struct prb_profile *profile, const struct prb_profile_format *chosen,
                       const struct prb_profile_style *style, const char *path, char *elsewhere,
                       size_t cap, struct prb_error *err)
{
    static const struct prb_profile_style plain;
    const struct prb_format *format = (const struct prb_format *)chosen;
    struct prb_profile_style wanted = style ? *style : plain;
    wanted.function |= wanted.nolineno;
    if (cap)
        *elsewhere = '\0';
    if (strcmp(path, "-") == 0 || is_special(path)) {
        if (!format->write)
            return prb_fail(err, PRB_USAGE, "the format %s needs a file of its own", chosen->name);
        if (strcmp(path, "-") == 0)
            return format->write(profile, &wanted, stdout, err) &&
                   flush(stdout, "standard output", err);
        FILE *special = prb_special_open(path, err);
        return special && write_stream(format, profile, &wanted, special, path, err);
    }
    struct prb_error why = {0};
    if (write_place(format, profile, &wanted, path, &why))
        return true;
    if (cap &&
        (why.sys == ENOSPC || why.sys == EDQUOT || why.sys == EROFS || why.sys == EFBIG ||
         why.code == PRB_IO) &&
        write_elsewhere(format, profile, &wanted, path, elsewhere, cap))
        return true;
    if (cap)
        *elsewhere = '\0';
    if (err)
        *err = why;
    return false;
}
