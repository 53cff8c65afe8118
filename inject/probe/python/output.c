/* What a job's code prints: kept until its client takes it, bounded, in the order of its writing.
 */
#include <string.h>

#include "inject/probe/python/job.h"

#define PIECE_MAX (256u << 10) /* bytes in one call of the sink */

static void append(struct prb_python_job *job, int stream, const char *text, size_t len)
{
    struct prb_job_piece piece = {.stream = (uint32_t)stream};
    bool first = !job->output.len;
    if (!first)
        memcpy(&piece, job->output.data + job->last_piece, sizeof piece);
    if (first || piece.stream != (uint32_t)stream || piece.len + len > PIECE_MAX) {
        job->last_piece = job->output.len;
        piece = (struct prb_job_piece){.stream = (uint32_t)stream};
        prb_buf_add(&job->output, &piece, sizeof piece);
    }
    prb_buf_add(&job->output, text, len);
    if (!prb_buf_ok(&job->output))
        return;
    piece.len += (uint32_t)len;
    memcpy(job->output.data + job->last_piece, &piece, sizeof piece);
    if (first)
        pthread_cond_broadcast(&job->changed);
}

/* Wait without the GIL until the client took some. */
static void make_room(struct prb_python_job *job, const struct prb_py_api *py)
{
    pthread_mutex_unlock(&job->lock);
    void *saved = py->PyEval_SaveThread();
    pthread_mutex_lock(&job->lock);
    while (job->output.len >= PRB_PYTHON_WAITING_MAX && !job->abandoned && !job->stop)
        prb_job_wait(job, 0);
    pthread_mutex_unlock(&job->lock);
    py->PyEval_RestoreThread(saved);
    pthread_mutex_lock(&job->lock);
}

void prb_job_write(struct prb_python_job *job, const struct prb_py_api *py, int stream,
                   const char *text, size_t len)
{
    pthread_mutex_lock(&job->lock);
    while (len) {
        if (job->output.len >= PRB_PYTHON_WAITING_MAX && !job->abandoned && !job->stop)
            make_room(job, py);
        size_t part = len < PIECE_MAX ? len : PIECE_MAX;
        if (job->abandoned || job->output.len >= PRB_PYTHON_WAITING_MAX ||
            job->output_total + part > PRB_PYTHON_OUTPUT_MAX)
            job->output_dropped += part;
        else
            append(job, stream, text, part);
        job->output_total += part;
        text += part, len -= part;
    }
    pthread_mutex_unlock(&job->lock);
}

void prb_job_drain(struct prb_python_job *job)
{
    while (job->draining)
        prb_job_wait(job, 0);
    job->draining = true;
    PRB_AUTO(prb_buf) struct prb_buf output = job->output;
    job->output = (struct prb_buf){0};
    pthread_cond_broadcast(&job->changed);
    pthread_mutex_unlock(&job->lock);
    bool heard = true;
    struct prb_job_piece piece;
    for (size_t place = 0; heard && place < output.len; place += sizeof piece + piece.len) {
        memcpy(&piece, output.data + place, sizeof piece);
        heard = job->sink.output(job->sink.context, (int)piece.stream,
                                 output.data + place + sizeof piece, piece.len);
    }
    pthread_mutex_lock(&job->lock);
    if (!heard && !job->stop)
        job->stop = PRB_JOB_CANCELLED;
    job->draining = false;
    pthread_cond_broadcast(&job->changed);
}
