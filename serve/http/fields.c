/* The table of names, and the check of a JSON body by it. */
#include "serve/http/fields.h"

#include <string.h>

#include "serve/http/route.h"

const struct prb_field prb_fields[] = {
    {"format", PRB_FIELD_TEXT, "the form of the answer"},
    {"timeout", PRB_FIELD_SECONDS, "the answer's deadline"},
    {"native", PRB_FIELD_FLAG, "native frames, too"},
    {"locals", PRB_FIELD_FLAG, "values of local variables, too"},
    {"idle", PRB_FIELD_FLAG, "threads that wait, too"},
    {"wait", PRB_FIELD_SECONDS, "how long to wait until it is another than If-None-Match says"},
    {"every", PRB_FIELD_SECONDS, "a line of JSON each time"},
    {"for", PRB_FIELD_SECONDS, "how long there are lines"},
    {"between", PRB_FIELD_SECONDS, "how long from the first look to the second"},
    {"by", PRB_FIELD_TEXT, "line or function: what makes two frames equal"},
    {"sql", PRB_FIELD_TEXT, "a statement"},
    {"after", PRB_FIELD_SECONDS, "since the epoch; 0 and less: from now on"},
    {"until", PRB_FIELD_SECONDS, "since the epoch; 0 and less: from now on"},
    {"start", PRB_FIELD_INTEGER, "the first element"},
    {"count", PRB_FIELD_INTEGER, "how many"},
    {"slice", PRB_FIELD_TEXT, "a part of a tensor, as a subscript of Python"},
    {"statistics", PRB_FIELD_FLAG, "smallest, largest, mean, NaN and so on of all elements"},
    {"bins", PRB_FIELD_INTEGER, "of a histogram"},
    {"frame", PRB_FIELD_TEXT, "a file as a frame names it, with :LINE"},
    {"seconds", PRB_FIELD_SECONDS, "how long"},
    {"rate", PRB_FIELD_NUMBER, "samples a second"},
    {"agent", PRB_FIELD_OBJECT, "how the host's agent is to be: options of `cluster attach`"},
    {"settings", PRB_FIELD_OBJECT, "settings of the probe, by key"},
    {"value", PRB_FIELD_TEXT, "the new value of a setting"},
    {"on", PRB_FIELD_FLAG, "whether a dump is written when it crashes"},
    {"hold", PRB_FIELD_SECONDS, "how long it is kept for a debugger after its dump"},
    {"code", PRB_FIELD_TEXT, "Python code"},
    {"address", PRB_FIELD_TEXT, "HOST:PORT of loopback; port 0: a free one"},
    {"pause", PRB_FIELD_FLAG, "the process waits for the debugger"},
    {"allow", PRB_FIELD_TEXT, "grants: control, eval, or both with a comma"},
    {"words", PRB_FIELD_WORDS, "a command of the command line that looks, and what follows it"},
    {"pid", PRB_FIELD_INTEGER, "a process"},
    {"name", PRB_FIELD_TEXT, "a part of the command line of a process"},
    {"thread", PRB_FIELD_INTEGER, "a thread, by its ident or the kernel's number"},
    {"frame", PRB_FIELD_INTEGER, "which frame of the thread; 0: the innermost"},
    {"namespace", PRB_FIELD_TEXT, "evaluations of one namespace share what they assign"},
    {"id", PRB_FIELD_TEXT, "a name by which DELETE ends the evaluation"},
    {"text", PRB_FIELD_TEXT, "what was typed"},
    {"cursor", PRB_FIELD_INTEGER, "the byte of it that the cursor stands before"},
    {"after", PRB_FIELD_NUMBER, "s since the epoch, or 0 and less: from now on"},
    {"until", PRB_FIELD_NUMBER, "the same"},
    {"from", PRB_FIELD_TEXT, "where an answer before ended: its next"},
    {"target", PRB_FIELD_TEXT, "PID or PID.STARTTIME"},
    {"mode", PRB_FIELD_TEXT, "active, wall, cpu or gil"},
    {0},
};

const struct prb_field *prb_field_named(const char *name, size_t len)
{
    for (const struct prb_field *field = prb_fields; field->doc; field++)
        if (strlen(field->name) == len && strncmp(field->name, name, len) == 0)
            return field;
    return NULL;
}

static bool holds_texts(const json_t *value)
{
    const char *key;
    json_t *one;
    size_t i;
    if (json_is_object(value))
        json_object_foreach((json_t *)value, key, one) if (!json_is_string(one)) return false;
    if (json_is_array(value))
        json_array_foreach(value, i, one) if (!json_is_string(one)) return false;
    return true;
}

static bool fits(const struct prb_field *field, const json_t *value)
{
    switch (field->type) {
    case PRB_FIELD_FLAG:
        return json_is_boolean(value);
    case PRB_FIELD_INTEGER:
        return json_is_integer(value) && json_integer_value(value) >= 0;
    case PRB_FIELD_NUMBER:
    case PRB_FIELD_SECONDS:
        return json_is_number(value) && json_number_value(value) >= 0;
    case PRB_FIELD_TEXT:
        return json_is_string(value);
    case PRB_FIELD_OBJECT:
        return json_is_object(value) && holds_texts(value);
    case PRB_FIELD_WORDS:
        return json_is_array(value) && holds_texts(value);
    }
    return false;
}

static const char *const kinds[] = {
    [PRB_FIELD_FLAG] = "true or false",
    [PRB_FIELD_INTEGER] = "an integer of 0 or more",
    [PRB_FIELD_NUMBER] = "a number",
    [PRB_FIELD_SECONDS] = "a number of seconds",
    [PRB_FIELD_TEXT] = "a text",
    [PRB_FIELD_OBJECT] = "an object of texts",
    [PRB_FIELD_WORDS] = "an array of texts",
};

/* Whether all that is needed is there and of its kind, and nothing else. */
static bool check(const char *keys, const json_t *object, struct prb_error *err)
{
    size_t known = 0;
    char name[32];
    for (const char *at = keys; at && *at; at += strspn(at, " ")) {
        size_t len = strcspn(at, "! ");
        const struct prb_field *field = prb_field_named(at, len);
        snprintf(name, sizeof name, "%.*s", (int)len, at);
        const json_t *value = json_object_get(object, name);
        if (!value && at[len] == '!')
            return prb_fail(err, PRB_USAGE, "\"%s\" is missing", name);
        if (value && field && !fits(field, value))
            return prb_fail(err, PRB_USAGE, "\"%s\" is %s", name, kinds[field->type]);
        known += value != NULL;
        at += len + (at[len] == '!');
    }
    if (known == json_object_size(object))
        return true;
    prb_fail(err, PRB_USAGE, "the body has a key that is not known here");
    return prb_error_remedy(err, "keys: %s", keys ? keys : "none");
}

json_t *prb_question_object(const struct prb_serve_job *job, struct prb_error *err)
{
    const struct prb_buf *body = &job->question->body;
    json_error_t why = {0};
    json_t *object =
        body->len ? json_loadb(body->data, body->len, JSON_REJECT_DUPLICATES, &why) : json_object();
    if (!json_is_object(object)) {
        json_decref(object);
        return PRB_NULL(prb_fail(err, PRB_USAGE, "the body is not a JSON object%s%s",
                                 *why.text ? ": " : "", why.text));
    }
    if (check(job->route->body, object, err))
        return object;
    json_decref(object);
    return NULL;
}
