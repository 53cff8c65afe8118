/*
 * The page's files.  page/embed.sh makes the table at build time: each file compressed, under a
 * folder that is named by the hash of all of them.  So a file never changes under its name and is
 * kept for a year, while `/` is asked for each time.  The folder itself is the list of their names, for
 * who shows the page elsewhere than in a browser.
 */
#include "serve/http/assets.h"

#include <string.h>

struct asset {
    const char *name, *type;
    const unsigned char *data;
    size_t size;
};

#include "serve/assets.inc" /* HASH, index_html, assets */

#define FOLDER "/assets/" HASH "/"
#define FOR_A_YEAR "public, max-age=31536000, immutable"
#define POLICY                                                                                     \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "              \
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; "                   \
    "frame-ancestors 'self'"

static const struct asset *find(const char *path)
{
    if (strncmp(path, FOLDER, sizeof FOLDER - 1) != 0)
        return NULL;
    for (const struct asset *one = assets; one->name; one++)
        if (strcmp(path + sizeof FOLDER - 1, one->name) == 0)
            return one;
    return NULL;
}

static bool answer_index(const char *known, struct prb_answer *answer)
{
    snprintf(answer->etag, sizeof answer->etag, "\"%s\"", HASH);
    answer->type = "text/html; charset=utf-8";
    answer->caching = "no-cache";
    answer->policy = POLICY;
    if (strcmp(known, answer->etag) == 0)
        answer->status = 304;
    else
        prb_buf_add(&answer->body, index_html, sizeof index_html - 1);
    return true;
}

static bool answer_list(struct prb_answer *answer)
{
    json_t *names = json_array();
    for (const struct asset *one = assets; one->name; one++)
        json_array_append_new(names, json_string(one->name));
    answer->caching = FOR_A_YEAR;
    answer->policy = POLICY;
    return prb_answer_json(answer, names, NULL);
}

bool prb_assets_answer(const char *path, const char *known, struct prb_answer *answer)
{
    if (strcmp(path, "/") == 0)
        return answer_index(known, answer);
    if (strcmp(path, FOLDER) == 0)
        return answer_list(answer);
    const struct asset *one = find(path);
    if (!one)
        return false;
    answer->type = one->type;
    answer->encoding = "gzip";
    answer->caching = FOR_A_YEAR;
    answer->policy = POLICY;
    prb_buf_add(&answer->body, one->data, one->size);
    return true;
}
