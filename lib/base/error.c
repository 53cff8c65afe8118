/* Filling struct prb_error: text only, no heap, so that nothing leaks in someone else's process. */
#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *const code_names[] = {
#define CODE(name, text, exit_code) [PRB_##name] = text,
    PRB_CODES(CODE)
#undef CODE
};

static const int exit_codes[] = {
#define CODE(name, text, exit_code) [PRB_##name] = exit_code,
    PRB_CODES(CODE)
#undef CODE
};

#define CODE_COUNT (sizeof code_names / sizeof *code_names)

const char *prb_code_name(enum prb_code code)
{
    return (size_t)code < CODE_COUNT ? code_names[code] : "unknown";
}

int prb_code_exit(enum prb_code code) { return (size_t)code < CODE_COUNT ? exit_codes[code] : 1; }

static void fill(struct prb_error *err, enum prb_code code, int sys, prb_addr addr,
                 const char *format, va_list args)
{
    if (!err)
        return;
    err->code = code;
    err->sys = sys;
    err->addr = addr;
    err->remedy[0] = '\0';
    vsnprintf(err->text, sizeof err->text, format, args);
}

bool prb_fail(struct prb_error *err, enum prb_code code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fill(err, code, 0, 0, format, args);
    va_end(args);
    return false;
}

bool prb_fail_args(struct prb_error *err, enum prb_code code, const char *remedy,
                   const char *format, va_list args)
{
    fill(err, code, 0, 0, format, args);
    return remedy ? prb_error_remedy(err, "%s", remedy) : false;
}

static enum prb_code code_of_errno(int sys)
{
    switch (sys) {
    case EPERM:
    case EACCES:
        return PRB_PERMISSION;
    case ESRCH:
        return PRB_GONE;
    case ENOENT:
        return PRB_NOT_FOUND;
    case EFAULT:
        return PRB_FAULT;
    case ENOMEM:
        return PRB_NOMEM;
    default:
        return PRB_IO;
    }
}

bool prb_error_is_our_limit(int sys) { return sys == EMFILE || sys == ENFILE || sys == ENOMEM; }

bool prb_fail_sys(struct prb_error *err, int sys, const char *format, ...)
{
    if (!err)
        return false;
    va_list args;
    va_start(args, format);
    fill(err, code_of_errno(sys), sys, 0, format, args);
    va_end(args);
    size_t used = strlen(err->text);
    snprintf(err->text + used, sizeof err->text - used, ": %s", strerror(sys));
    if (sys == EMFILE)
        prb_error_remedy(err, "raise the limit of open files: ulimit -n");
    return false;
}

bool prb_fail_addr(struct prb_error *err, prb_addr addr, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fill(err, PRB_FAULT, EFAULT, addr, format, args);
    va_end(args);
    return false;
}

bool prb_error_prefix(struct prb_error *err, const char *format, ...)
{
    if (!err)
        return false;
    char tail[sizeof err->text];
    memcpy(tail, err->text, sizeof tail);
    va_list args;
    va_start(args, format);
    int used = vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    if (used >= 0 && (size_t)used < sizeof err->text)
        snprintf(err->text + used, sizeof err->text - (size_t)used, ": %.*s",
                 (int)(sizeof err->text - (size_t)used), tail);
    return false;
}

bool prb_error_remedy(struct prb_error *err, const char *format, ...)
{
    if (!err)
        return false;
    va_list args;
    va_start(args, format);
    vsnprintf(err->remedy, sizeof err->remedy, format, args);
    va_end(args);
    return false;
}

bool prb_nomem(struct prb_error *err) { return prb_fail(err, PRB_NOMEM, "out of memory"); }
