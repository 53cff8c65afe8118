/* Paths: see paths.h.  The longest root that is a prefix of whole components wins.  A local root
 * with backslashes or a drive letter belongs to a Windows client, and is compared without case. */
#include "dap/client/paths.h"

#include <ctype.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"

static bool is_separator(char c, bool windows) { return c == '/' || (windows && c == '\\'); }

static bool is_windows(const char *path)
{
    return (isalpha((unsigned char)path[0]) && path[1] == ':') ||
           (path[0] == '\\' && path[1] == '\\');
}

/* What follows root in path, without separator; NULL: root is not a prefix of whole components. */
static const char *behind(const char *root, const char *path, bool windows)
{
    size_t i = 0;
    for (; root[i]; i++) {
        bool same = windows ? tolower((unsigned char)root[i]) == tolower((unsigned char)path[i]) ||
                                  (is_separator(root[i], true) && is_separator(path[i], true))
                            : root[i] == path[i];
        if (!same)
            return NULL;
    }
    if (path[i] == '\0')
        return path + i;
    return is_separator(path[i], windows) ? path + i + 1 : NULL;
}

static char *join(const char *root, const char *rest, char separator, bool from_windows)
{
    PRB_AUTO(prb_buf) struct prb_buf path = {0};
    prb_buf_adds(&path, root);
    if (*rest || !*root)
        prb_buf_addc(&path, separator);
    for (; *rest; rest++)
        prb_buf_addc(&path, is_separator(*rest, from_windows) ? separator : *rest);
    return prb_buf_steal(&path);
}

/* Remove ".", ".." and repeated separators from an absolute path, in place, by its text alone. */
static void tidy(char *path, bool windows)
{
    size_t first = windows && path[1] == ':' ? 2 : 0, end = first;
    if (!is_separator(path[first], windows) || (windows && first == 0)) /* relative, or a share */
        return;
    for (const char *at = path + first; *at;) {
        char separator = *at++;
        size_t len = strcspn(at, windows ? "/\\" : "/");
        bool up = len == 2 && at[0] == '.' && at[1] == '.';
        while (up && end > first && !is_separator(path[--end], windows))
            continue;
        if (len && !up && !(len == 1 && at[0] == '.')) {
            path[end] = separator;
            memmove(path + end + 1, at, len);
            end += len + 1;
        }
        at += len;
    }
    if (end == first)
        path[end++] = '/';
    path[end] = '\0';
}

static char *root_of(const char *text, const char *cwd)
{
    if (strcmp(text, ".") == 0 && cwd)
        text = cwd;
    bool windows = is_windows(text);
    char *root = strdup(text);
    if (!root)
        return NULL;
    tidy(root, windows);
    size_t len = strlen(root);
    while (len && is_separator(root[len - 1], windows))
        root[--len] = '\0';
    return root;
}

static bool add_mapping(struct prb_dap_paths *paths, const json_t *local, const json_t *remote,
                        const char *cwd, struct prb_error *err)
{
    if (!json_is_string(local) || !json_is_string(remote))
        return prb_fail(err, PRB_USAGE, "localRoot and remoteRoot of pathMappings must be strings");
    if (paths->count == PRB_DAP_MAPPINGS_MAX)
        return prb_fail(err, PRB_USAGE, "pathMappings has more than %d entries",
                        PRB_DAP_MAPPINGS_MAX);
    struct prb_dap_mapping *one = &paths->items[paths->count];
    one->local = root_of(json_string_value(local), NULL);
    one->remote = root_of(json_string_value(remote), cwd);
    paths->count++;
    paths->elsewhere = paths->elsewhere || (one->local && access(one->local, F_OK) != 0);
    return (one->local && one->remote) || prb_fail(err, PRB_NOMEM, "out of memory");
}

bool prb_dap_paths_set(struct prb_dap_paths *paths, const json_t *mappings, const char *cwd,
                       struct prb_error *err)
{
    size_t i;
    const char *key;
    json_t *one;
    if (!mappings || json_is_null(mappings))
        return true;
    if (json_is_object(mappings)) {
        json_object_foreach((json_t *)mappings, key, one)
        {
            json_t *local = json_string(key);
            bool good = add_mapping(paths, local, one, cwd, err);
            json_decref(local);
            if (!good)
                return false;
        }
        return true;
    }
    if (!json_is_array(mappings))
        return prb_fail(err, PRB_USAGE, "pathMappings must be an array of {localRoot, remoteRoot}");
    json_array_foreach(mappings, i, one)
    {
        bool pair = json_is_array(one);
        const json_t *local = pair ? json_array_get(one, 0) : json_object_get(one, "localRoot");
        const json_t *remote = pair ? json_array_get(one, 1) : json_object_get(one, "remoteRoot");
        if (!add_mapping(paths, local, remote, cwd, err))
            return false;
    }
    return true;
}

void prb_dap_paths_clear(struct prb_dap_paths *paths)
{
    for (size_t i = 0; i < paths->count; i++) {
        free(paths->items[i].local);
        free(paths->items[i].remote);
    }
    for (size_t i = 0; i < paths->source_count; i++)
        free(paths->sources[i]);
    free(paths->sources);
    *paths = (struct prb_dap_paths){0};
}

/* "file:///a%20b" as a path; anything else as it is. */
static char *from_uri(const char *text)
{
    static const char scheme[] = "file://";
    if (strncmp(text, scheme, sizeof scheme - 1) != 0)
        return strdup(text);
    PRB_AUTO(prb_buf) struct prb_buf path = {0};
    text += sizeof scheme - 1;
    text += strcspn(text, "/"); /* a host */
    if (text[0] == '/' && is_windows(text + 1))
        text++;
    for (; *text; text++) {
        char digits[3] = {text[0] == '%' ? text[1] : '\0',
                          text[0] == '%' && text[1] ? text[2] : '\0'};
        bool escaped = isxdigit((unsigned char)digits[0]) && isxdigit((unsigned char)digits[1]);
        char c = escaped ? (char)strtol(digits, NULL, 16) : *text;
        if (c) /* %00 has no place in a path */
            prb_buf_addc(&path, c);
        text += escaped ? 2 : 0;
    }
    prb_buf_adds(&path, "");
    return prb_buf_steal(&path);
}

static char *to_uri(const char *path)
{
    PRB_AUTO(prb_buf) struct prb_buf uri = {0};
    prb_buf_adds(&uri, is_windows(path) ? "file:///" : "file://");
    for (; *path; path++)
        if (isalnum((unsigned char)*path) || strchr("/-._~:\\", *path))
            prb_buf_addc(&uri, *path == '\\' ? '/' : *path);
        else
            prb_buf_addf(&uri, "%%%02X", (unsigned char)*path);
    return prb_buf_steal(&uri);
}

char *prb_dap_paths_in(const struct prb_dap_paths *paths, const char *client_path)
{
    PRB_AUTO_FREE char *path = from_uri(client_path);
    const struct prb_dap_mapping *best = NULL;
    const char *rest = NULL;
    if (path && paths->count)
        tidy(path, is_windows(path));
    for (size_t i = 0; path && i < paths->count; i++) {
        const struct prb_dap_mapping *one = &paths->items[i];
        const char *found = behind(one->local, path, is_windows(one->local));
        if (found && (!best || strlen(one->local) > strlen(best->local))) {
            best = one;
            rest = found;
        }
    }
    return best ? join(best->remote, rest, '/', is_windows(best->local)) : PRB_STEAL(path);
}

static const struct prb_dap_mapping *find_out(const struct prb_dap_paths *paths,
                                              const char *target_path, const char **rest_out)
{
    const struct prb_dap_mapping *best = NULL;
    for (size_t i = 0; i < paths->count; i++) {
        const struct prb_dap_mapping *one = &paths->items[i];
        const char *found = behind(one->remote, target_path, false);
        if (found && (!best || strlen(one->remote) > strlen(best->remote))) {
            best = one;
            *rest_out = found;
        }
    }
    return best;
}

char *prb_dap_paths_out(const struct prb_dap_paths *paths, const char *target_path)
{
    const char *rest = NULL;
    const struct prb_dap_mapping *best = find_out(paths, target_path, &rest);
    PRB_AUTO_FREE char *path =
        best ? join(best->local, rest, is_windows(best->local) ? '\\' : '/', false)
             : strdup(target_path);
    return path && paths->uris ? to_uri(path) : PRB_STEAL(path);
}

bool prb_dap_paths_is_mapped(const struct prb_dap_paths *paths, const char *target_path)
{
    const char *rest = NULL;
    return find_out(paths, target_path, &rest) != NULL;
}

int prb_dap_paths_number(struct prb_dap_paths *paths, const char *target_path)
{
    for (size_t i = 0; i < paths->source_count; i++)
        if (strcmp(paths->sources[i], target_path) == 0)
            return PRB_DAP_SOURCE_FIRST + (int)i;
    char *copy = paths->source_count < PRB_DAP_SOURCES_MAX ? strdup(target_path) : NULL;
    if (!copy || !PRB_GROW(paths->sources, paths->source_count, paths->source_cap)) {
        free(copy);
        return 0;
    }
    paths->sources[paths->source_count] = copy;
    return PRB_DAP_SOURCE_FIRST + (int)paths->source_count++;
}

const char *prb_dap_paths_numbered(const struct prb_dap_paths *paths, json_int_t number)
{
    json_int_t index = number - PRB_DAP_SOURCE_FIRST;
    return index >= 0 && index < (json_int_t)paths->source_count ? paths->sources[index] : NULL;
}
