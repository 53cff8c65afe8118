/* Sources: see sources.h.  The client gets a path as it is, or mapped.  If there is no such file
 * here, or the target sees another file (a container), the client gets a number to ask for the
 * text. */
#include "dap/client/sources.h"

#include <string.h>
#include <sys/stat.h>

#include "proc/below.h"

/* Whether a path names the same file here as for the target. */
static bool is_same_file(const struct prb_dap_session *session, const char *path)
{
    struct stat mine, its;
    if (path[0] != '/' || stat(path, &mine) != 0)
        return false;
    if (!session->pid)
        return true;
    PRB_AUTO_FD int root = prb_root_open(session->pid);
    return root < 0 || !prb_stat_below(root, path, &its) ||
           (its.st_dev == mine.st_dev && its.st_ino == mine.st_ino);
}

static int number_for(struct prb_dap_session *session, const char *path)
{
    if (path[0] != '/' || prb_dap_paths_is_mapped(&session->paths, path) ||
        (!session->paths.elsewhere && is_same_file(session, path)))
        return 0;
    pthread_mutex_lock(&session->lock);
    int number = prb_dap_paths_number(&session->paths, path);
    pthread_mutex_unlock(&session->lock);
    return number;
}

json_t *prb_dap_source_json(struct prb_dap_session *session, const char *path, json_int_t reference,
                            bool own)
{
    if (!path && !reference)
        return NULL;
    PRB_AUTO_FREE char *shown = path ? prb_dap_paths_out(&session->paths, path) : NULL;
    const char *slash = path ? strrchr(path, '/') : NULL;
    json_t *source = json_object();
    if (path)
        json_object_set_new(source, "name", json_string(slash && slash[1] ? slash + 1 : path));
    if (shown)
        json_object_set_new(source, "path", json_string(shown));
    if (!reference && path)
        reference = number_for(session, path);
    if (reference)
        json_object_set_new(source, "sourceReference", json_integer(reference));
    if (!own)
        json_object_set_new(source, "presentationHint", json_string("deemphasize"));
    return source;
}

json_t *prb_dap_source_wanted(struct prb_dap_session *session, const json_t *source,
                              struct prb_error *err)
{
    json_int_t reference = 0;
    const char *path = NULL;
    if (!json_is_object(source))
        return PRB_NULL(prb_fail(err, PRB_USAGE, "source must be an object"));
    if (!prb_dap_get_integer(source, "sourceReference", &reference, err) ||
        !prb_dap_get_string(source, "path", &path, err))
        return NULL;
    pthread_mutex_lock(&session->lock);
    const char *numbered = prb_dap_paths_numbered(&session->paths, reference);
    json_t *known = numbered ? json_pack("{s:s}", "path", numbered) : NULL;
    pthread_mutex_unlock(&session->lock);
    if (known)
        return known;
    if (reference > 0)
        return json_pack("{s:I}", "sourceReference", reference);
    PRB_AUTO_FREE char *mapped = path ? prb_dap_paths_in(&session->paths, path) : NULL;
    if (!mapped)
        return PRB_NULL(
            prb_fail(err, PRB_USAGE, "the source has neither path nor sourceReference"));
    return json_pack("{s:s}", "path", mapped);
}

static void map_number(json_t *object, const char *key, bool from_0)
{
    const json_t *number = json_object_get(object, key);
    if (from_0 && json_is_integer(number))
        json_object_set_new(object, key, json_integer(json_integer_value(number) - 1));
}

/* "path", and a source as the back end writes it, become DAP's. */
void prb_dap_lines_map(struct prb_dap_session *session, json_t *object)
{
    json_t *source = json_object_get(object, "source");
    const char *path = json_string_value(json_object_get(source ? source : object, "path"));
    json_int_t reference =
        json_integer_value(json_object_get(source ? source : object, "sourceReference"));
    json_t *mapped = prb_dap_source_json(session, path, reference, true);
    if (mapped)
        json_object_set_new(object, "source", mapped);
    if (!source) {
        json_object_del(object, "path");
        json_object_del(object, "sourceReference");
    }
    map_number(object, "line", session->client.lines_from_0);
    map_number(object, "endLine", session->client.lines_from_0);
    map_number(object, "column", session->client.columns_from_0);
    map_number(object, "endColumn", session->client.columns_from_0);
}

void prb_dap_sources_map(struct prb_dap_session *session, json_t *body)
{
    json_t *breakpoint = json_object_get(body, "breakpoint");
    if (breakpoint)
        prb_dap_lines_map(session, breakpoint);
    else if (json_object_get(body, "source"))
        prb_dap_lines_map(session, body);
}

/* ---- numbers ---- */

json_int_t prb_dap_line_in(const struct prb_dap_session *session, json_int_t line)
{
    return line + session->client.lines_from_0;
}
json_int_t prb_dap_line_out(const struct prb_dap_session *session, json_int_t line)
{
    return line - session->client.lines_from_0;
}
json_int_t prb_dap_column_in(const struct prb_dap_session *session, json_int_t column)
{
    return column + session->client.columns_from_0;
}
json_int_t prb_dap_column_out(const struct prb_dap_session *session, json_int_t column)
{
    return column - session->client.columns_from_0;
}
