/*
 * CPython's own switches against being debugged from outside: PYTHON_DISABLE_REMOTE_DEBUG (not
 * empty) and -X disable-remote-debug (documentation of 3.14, "Command line and environment", PEP
 * 768).  They are honoured on every version, from what the process was started with.  And its
 * switches against the environment: -I and -E.
 */
#include "inject/probe/python_switches.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/cleanup.h"
#include "inject/probe/socket_path.h"

#define TEXT_MAX (1 << 20)

static const char variable[] = "PYTHON_DISABLE_REMOTE_DEBUG", option[] = "disable-remote-debug";

static bool is_option(const char *value)
{
    size_t n = sizeof option - 1;
    return !strncmp(value, option, n) && (value[n] == '\0' || value[n] == '=');
}

/* Of a cluster of short options: the one that takes the rest of it or the next argument, at *rest;
 * 0: none. */
static char takes_value(const char *cluster, const char **rest)
{
    const char *at = strpbrk(cluster, "XWcm");
    *rest = at ? at + 1 : NULL;
    return at ? *at : '\0';
}

/* Whether one of the interpreter's own options is it: a letter, and the value of one that takes
 * one.  arguments: "python\0-X\0…\0".  They end at the script, -c or -m. */
static bool named_in(const char *arguments, size_t len,
                     bool (*is_it)(char letter, const char *value))
{
    const char *end = arguments + len;
    for (const char *at = arguments + strlen(arguments) + 1; at < end && *at == '-' && at[1];
         at += strlen(at) + 1) {
        const char *value;
        if (at[1] == '-') {
            if (!at[2])
                return false;
            if (!strcmp(at, "--check-hash-based-pycs"))
                at += strlen(at) + 1;
            continue;
        }
        char letter = takes_value(at + 1, &value);
        for (const char *flag = at + 1; *flag && (!value || flag + 1 < value); flag++)
            if (is_it(*flag, ""))
                return true;
        if (letter == 'c' || letter == 'm')
            return false;
        if (letter && !*value) {
            at += strlen(at) + 1;
            value = at;
        }
        if (letter && value < end && is_it(letter, value))
            return true;
        if (at >= end)
            return false;
    }
    return false;
}

static bool is_against_debugging(char letter, const char *value)
{
    return letter == 'X' && is_option(value);
}

static bool is_against_environment(char letter, const char *value)
{
    (void)value;
    return letter == 'I' || letter == 'E';
}

static bool look(const char **why_out)
{
    PRB_AUTO_FREE char *text = malloc(TEXT_MAX);
    if (!text)
        return false;
    long len = prb_socket_path_self("environ", text, TEXT_MAX);
    if (len > 0 && *prb_socket_path_variable(text, (size_t)len, variable)) {
        *why_out = variable;
        return true;
    }
    len = prb_socket_path_self("cmdline", text, TEXT_MAX);
    *why_out = "-X disable-remote-debug";
    return len > 0 && named_in(text, (size_t)len, is_against_debugging);
}

bool prb_remote_debug_is_off(const char **why_out)
{
    /* A process is started once; the server's thread alone asks. */
    static bool looked, off;
    static const char *why;
    if (!looked)
        off = look(&why);
    looked = true;
    *why_out = why;
    return off;
}

bool prb_environment_is_shut(bool preloaded)
{
    if (getauxval(AT_SECURE))
        return true;
    if (preloaded)
        return false;
    PRB_AUTO_FREE char *text = malloc(TEXT_MAX);
    long len = text ? prb_socket_path_self("cmdline", text, TEXT_MAX) : -1;
    return len > 0 && strstr(text, "python") && named_in(text, (size_t)len, is_against_environment);
}
