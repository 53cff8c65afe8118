/* The command line of a program that `launch` starts: see program_command.h. */
#include "dap/attach/program_command.h"

#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"

extern char **environ;

/*
 * Waits for its byte; without one (the client left) it ends.  Then argv, sys.path and __main__ are
 * those of the program; ended: functions that get a SystemExit of it.  The agent (threads.py and
 * uncaught.py in inject/probe/debug/agent) knows these functions by their names.  It is one line, since a terminal's shell may get it: line ends are Python escapes.
 */
static const char bootstrap[] =
    "exec(\""
    "import sys\\n"
    "def _probing_wait(path):\\n"
    "    import socket\\n"
    "    with socket.socket(socket.AF_UNIX) as gate:\\n"
    "        gate.connect(path)\\n"
    "        return gate.recv(1)\\n"
    "def _probing_run(kind, space, ended=[]):\\n"
    "    try:\\n"
    "        if kind == 'module':\\n"
    "            import runpy\\n"
    "            runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)\\n"
    "            return\\n"
    "        import os\\n"
    "        path = sys.argv[0]\\n"
    "        sys.path[0] = os.path.dirname(os.path.abspath(path))\\n"
    "        space['__file__'] = path\\n"
    "        del space['_probing_run'], space['kind'], space['sys']\\n"
    "        with open(path, 'rb') as file:\\n"
    "            code = compile(file.read(), path, 'exec', 0, True)\\n"
    "        exec(code, space)\\n"
    "    except SystemExit as error:\\n"
    "        for one in ended: one(error)\\n"
    "        raise\\n"
    "if not _probing_wait(sys.argv[1]): sys.exit(1)\\n"
    "del _probing_wait\\n"
    "kind, sys.argv = sys.argv[2], sys.argv[3:]\\n"
    "\"); _probing_run(kind, globals())";

void prb_dap_words_deinit(struct prb_dap_words *words)
{
    for (size_t i = 0; i < words->count; i++)
        free(words->items[i]);
}

static bool add_word(struct prb_dap_words *words, const char *text, struct prb_error *err)
{
    if (words->count == PRB_DAP_WORDS_MAX)
        return prb_fail(err, PRB_USAGE, "the command has more than %d arguments",
                        PRB_DAP_WORDS_MAX);
    words->items[words->count] = strdup(text);
    return words->items[words->count++] || prb_fail(err, PRB_NOMEM, "out of memory");
}

/* A string, or an array of strings. */
static bool add_words(struct prb_dap_words *words, const json_t *given, const char *key,
                      struct prb_error *err)
{
    const json_t *one;
    size_t i;
    if (json_is_string(given))
        return add_word(words, json_string_value(given), err);
    if (given && !json_is_array(given))
        return prb_fail(err, PRB_USAGE, "%s must be an array of strings", key);
    json_array_foreach(given, i, one)
    {
        if (!json_is_string(one))
            return prb_fail(err, PRB_USAGE, "%s must be an array of strings", key);
        if (!add_word(words, json_string_value(one), err))
            return false;
    }
    return true;
}

/* One word of a text by the rules of a POSIX shell, without expansion; *at moves on. */
static char *next_word(const char **at, struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf word = {0};
    const char *p = *at;
    char quote = '\0';
    for (; *p && (quote || !strchr(" \t\n", *p)); p++) {
        if (*p == '\\' && quote != '\'' && p[1] && (!quote || strchr("$`\"\\\n", p[1]))) {
            if (*++p != '\n')
                prb_buf_add(&word, p, 1);
        } else if (quote ? *p == quote : *p == '\'' || *p == '"') {
            quote = quote ? '\0' : *p;
        } else {
            prb_buf_add(&word, p, 1);
        }
    }
    *at = p;
    if (quote)
        return PRB_NULL(prb_fail(err, PRB_USAGE, "args has a %c without its end", quote));
    char *text = word.len ? prb_buf_steal(&word) : strdup("");
    return text ? text : PRB_NULL(prb_fail(err, PRB_NOMEM, "out of memory"));
}

/* args as a text, which the user has typed. */
static bool add_typed(struct prb_dap_words *words, const char *text, struct prb_error *err)
{
    for (;;) {
        text += strspn(text, " \t\n");
        if (!*text)
            return true;
        PRB_AUTO_FREE char *word = next_word(&text, err);
        if (!word || !add_word(words, word, err))
            return false;
    }
}

static bool add_args(struct prb_dap_words *words, const json_t *given, bool shell,
                     struct prb_error *err)
{
    if (!json_is_string(given))
        return add_words(words, given, "args", err);
    words->typed = shell && *json_string_value(given);
    return shell ? !words->typed || add_word(words, json_string_value(given), err)
                 : add_typed(words, json_string_value(given), err);
}

static bool check_file(const char *program, const char *cwd, struct prb_error *err)
{
    struct stat status;
    PRB_AUTO_FREE char *whole = NULL;
    if (asprintf(&whole, "%s%s%s", program[0] == '/' || !cwd ? "" : cwd,
                 program[0] == '/' || !cwd ? "" : "/", program) < 0)
        return prb_fail(err, PRB_NOMEM, "out of memory");
    if (stat(whole, &status) != 0 || !S_ISREG(status.st_mode))
        return prb_fail(err, PRB_NOT_FOUND, "program not found: %s", whole);
    return true;
}

bool prb_dap_program_command(const char *gate, const json_t *arguments, bool shell,
                             struct prb_dap_words *words, struct prb_error *err)
{
    const json_t *python = prb_dap_get(arguments, "python");
    const char *file = NULL, *module = NULL, *cwd = NULL;
    python = python ? python : prb_dap_get(arguments, "pythonPath");
    if (!prb_dap_get_string(arguments, "program", &file, err) ||
        !prb_dap_get_string(arguments, "module", &module, err) ||
        !prb_dap_get_string(arguments, "cwd", &cwd, err))
        return false;
    if (!file && !module)
        return prb_fail(err, PRB_USAGE, "launch needs a program or a module");
    if (file && !check_file(file, cwd, err))
        return false;
    return (python ? add_words(words, python, "python", err) : add_word(words, "python3", err)) &&
           add_words(words, prb_dap_get(arguments, "pythonArgs"), "pythonArgs", err) &&
           add_word(words, "-c", err) && add_word(words, bootstrap, err) &&
           add_word(words, gate, err) && add_word(words, file ? "file" : "module", err) &&
           add_word(words, file ? file : module, err) &&
           add_args(words, prb_dap_get(arguments, "args"), shell, err);
}

bool prb_dap_program_environment(const json_t *arguments, struct prb_dap_words *words,
                                 struct prb_error *err)
{
    json_t *given = prb_dap_get(arguments, "env"), *value;
    const char *key;
    PRB_AUTO_FREE char *text = NULL;
    for (char **at = environ; *at; at++) {
        char name[256];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(*at, "="), *at);
        if (!json_object_get(given, name) && !add_word(words, *at, err))
            return false;
    }
    json_object_foreach(given, key, value)
    {
        if (!json_is_string(value))
            continue;
        free(text);
        if (asprintf(&text, "%s=%s", key, json_string_value(value)) < 0)
            return prb_fail(err, PRB_NOMEM, "out of memory");
        if (!add_word(words, text, err))
            return false;
    }
    return getenv("PYTHONUNBUFFERED") || json_object_get(given, "PYTHONUNBUFFERED") ||
           add_word(words, "PYTHONUNBUFFERED=1", err);
}
