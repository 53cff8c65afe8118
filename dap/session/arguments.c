/* Members of a message of the client, checked: see request.h. */
#include "base/error.h"
#include "dap/session/request.h"

json_t *prb_dap_get(const json_t *arguments, const char *key)
{
    json_t *found = json_object_get(arguments, key);
    return json_is_null(found) ? NULL : found;
}

bool prb_dap_get_string(const json_t *arguments, const char *key, const char **out,
                        struct prb_error *err)
{
    const json_t *found = prb_dap_get(arguments, key);
    if (found && !json_is_string(found))
        return prb_fail(err, PRB_USAGE, "%s must be a string", key);
    if (found)
        *out = json_string_value(found);
    return true;
}

bool prb_dap_get_integer(const json_t *arguments, const char *key, json_int_t *out,
                         struct prb_error *err)
{
    const json_t *found = prb_dap_get(arguments, key);
    if (found && !json_is_integer(found))
        return prb_fail(err, PRB_USAGE, "%s must be an integer", key);
    if (found)
        *out = json_integer_value(found);
    return true;
}

bool prb_dap_get_flag(const json_t *arguments, const char *key, bool *out, struct prb_error *err)
{
    const json_t *found = prb_dap_get(arguments, key);
    if (found && !json_is_boolean(found))
        return prb_fail(err, PRB_USAGE, "%s must be true or false", key);
    if (found)
        *out = json_is_true(found);
    return true;
}
