/*
 * CPython's remote debugging interface, PEP 768: a script's path is written into the main thread's
 * state, a flag and a bit of the eval breaker are set, and the interpreter runs the script at its
 * next check (Python/ceval_gil.c, Python/remote_debugging.c).  Nothing is stopped.  But nothing
 * happens while the main thread is in native code, and the library is loaded on that thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>

#include "base/clock.h"
#include "base/file.h"
#include "inject/enter/steps.h"
#include "proc/below.h"
#include "py/py.h"

#define WAIT_S 2.0
#define NAP_NS 1000000

struct door {
    struct prb_proc *proc;
    struct prb_debugger_support at;
    prb_addr thread; /* the main thread's state */
};

static bool poke(struct door *door, prb_addr addr, const void *bytes, size_t len,
                 struct prb_error *err)
{
    struct iovec local = {(void *)bytes, len}, remote = {(void *)addr, len};
    if (process_vm_writev(prb_proc_pid(door->proc), &local, 1, &remote, 1, 0) == (ssize_t)len)
        return true;
    return prb_fail_sys(err, errno, "cannot write to the memory of process %d",
                        (int)prb_proc_pid(door->proc));
}

static bool switched_off(pid_t pid, struct prb_error *err)
{
    prb_fail(err, PRB_PERMISSION,
             "process %d forbids remote debugging (PYTHON_DISABLE_REMOTE_DEBUG or -X "
             "disable-remote-debug)",
             (int)pid);
    return prb_error_remedy(err, "Start the job without that switch");
}

/* The main thread of the main interpreter, if remote debugging is enabled. */
static bool find_door(struct door *door, struct prb_py *py, struct prb_error *err)
{
    prb_addr interpreter;
    uint32_t enabled, pending;
    if (!prb_debugger_support(py->mem, py->runtime, &py->layout, &door->at, err) ||
        !prb_mem_u64(py->mem, py->interpreters, &interpreter, err) ||
        !PRB_FIELD_OF(py, interpreter, interp, threads_main, &door->thread, err) ||
        !prb_mem_u32(py->mem, interpreter + door->at.enabled, &enabled, err) ||
        !prb_mem_u32(py->mem, door->thread + door->at.support + door->at.pending, &pending, err))
        return false;
    if (enabled != 1)
        return switched_off(prb_proc_pid(door->proc), err);
    if (!door->thread)
        return prb_fail(err, PRB_GONE, "the main thread of Python has ended in process %d",
                        (int)prb_proc_pid(door->proc));
    if (pending == 0)
        return true;
    prb_fail(err, PRB_BUSY, "process %d is about to run another debugger's script",
             (int)prb_proc_pid(door->proc));
    return prb_error_remedy(err, "Try again when it is done");
}

/* ---- the script ---- */

/* A Python bytes literal. */
static void add_bytes(struct prb_buf *out, const char *text)
{
    prb_buf_adds(out, "b'");
    for (; *text; text++)
        prb_buf_addf(out, "\\x%02x", (unsigned char)*text);
    prb_buf_adds(out, "'");
}

/* Loads the library, starts the probe, and writes the result to a file.  Its names stay local. */
static const char body[] =
    "def _probing(library, settings, answer, how):\n"
    "    said = b'ok'\n"
    "    try:\n"
    "        import ctypes\n"
    "        class Call(ctypes.Structure):\n"
    "            _fields_ = [('version', ctypes.c_uint32), ('size', ctypes.c_uint32),\n"
    "                        ('settings', ctypes.c_char_p), ('how', ctypes.c_char_p),\n"
    "                        ('error', ctypes.c_char * 256), ('functions', ctypes.c_void_p)]\n"
    "        loaded = ctypes.CDLL(library.decode())\n"
    "        if settings is not None:\n"
    "            call = Call(1, ctypes.sizeof(Call), settings or None, how)\n"
    "            if loaded.prb_probe_start(ctypes.byref(call)):\n"
    "                said = call.error or b'it gave no reason'\n"
    "    except BaseException as error:\n"
    "        said = repr(error).encode('utf-8', 'replace')\n"
    "    with open(answer, 'wb', 0) as file:\n"
    "        file.write(said)\n";

static char *write_script(const struct prb_delivery *delivery, const char *library,
                          const char *settings, const char *answer)
{
    struct prb_buf text = {0};
    prb_buf_adds(&text, body);
    prb_buf_adds(&text, "_probing(");
    add_bytes(&text, library);
    prb_buf_adds(&text, ", ");
    if (delivery->start)
        add_bytes(&text, settings ? settings : "");
    else
        prb_buf_adds(&text, "None");
    prb_buf_adds(&text, ", ");
    add_bytes(&text, answer);
    prb_buf_addf(&text, ", b'%d/%u')\ndel _probing\n", (int)getpid(), (unsigned)geteuid());
    return prb_buf_steal(&text);
}

/* Files in the target's root, removed in the end. */
struct files {
    struct prb_target_file library, script, answer;
};

static void remove_files(struct files *files)
{
    prb_target_file_deinit(&files->library);
    prb_target_file_deinit(&files->script);
    prb_target_file_deinit(&files->answer);
}
PRB_DEFINE_AUTO(files, struct files, remove_files)

static bool put_files(struct door *door, const struct prb_delivery *delivery,
                      const struct prb_inject_options *options, struct files *files,
                      struct prb_error *err)
{
    struct prb_proc *proc = door->proc;
    bool good =
        delivery->path[0] || prb_target_file(proc, delivery->start ? "-libprobe.so" : ".so",
                                             delivery->bytes, delivery->len, &files->library);
    good = good && prb_target_file(proc, ".answer", "", 0, &files->answer);
    const char *library = delivery->path[0] ? delivery->path : files->library.path;
    PRB_AUTO_FREE char *text =
        good ? write_script(delivery, library, options->settings, files->answer.path) : NULL;
    if (text && prb_target_file(proc, ".py", text, strlen(text), &files->script))
        return true;
    return prb_fail(err, PRB_IO, "no file can be made in /dev/shm, /tmp or /var/tmp of process %d",
                    (int)prb_proc_pid(proc));
}

/* What the script wrote; "": nothing yet, or the target put another file in its place. */
static void read_answer(const struct prb_target_file *answer, char *said, size_t size)
{
    struct stat info;
    PRB_AUTO_FD int fd = prb_open_below(answer->folder, answer->name);
    bool ours = fd >= 0 && fstat(fd, &info) == 0 && info.st_dev == answer->device &&
                info.st_ino == answer->inode;
    said[ours ? prb_read_at(fd, said, size - 1, 0) : 0] = '\0';
}

/* ---- asking ---- */

static bool ring(struct door *door, struct prb_mem *mem, const char *script, struct prb_error *err)
{
    const struct prb_debugger_support *at = &door->at;
    prb_addr support = door->thread + at->support, breaker = door->thread + at->eval_breaker;
    uint32_t pending = 1;
    uint64_t bits;
    if (strlen(script) >= at->script_path_size)
        return prb_fail(err, PRB_INTERNAL, "the path %s is too long for the interpreter", script);
    if (!poke(door, support + at->script_path, script, strlen(script) + 1, err) ||
        !poke(door, support + at->pending, &pending, sizeof pending, err) ||
        !prb_mem_u64(mem, breaker, &bits, err))
        return false;
    bits |= UINT64_C(1) << PRB_PLEASE_STOP_BIT;
    return poke(door, breaker, &bits, sizeof bits, err);
}

static bool await_answer(struct door *door, const struct files *files, double wait,
                         struct prb_error *err)
{
    char said[240];
    pid_t pid = prb_proc_pid(door->proc);
    double begin = prb_clock_s();
    while (read_answer(&files->answer, said, sizeof said), !*said) {
        double waited = prb_clock_s() - begin;
        if (!prb_proc_check(door->proc, err))
            return false;
        if (waited > wait) {
            /* Else it would run later, when the files are gone. */
            uint32_t none = 0;
            poke(door, door->thread + door->at.support + door->at.pending, &none, sizeof none,
                 NULL);
            prb_fail(err, PRB_TIMEOUT,
                     "the main thread of process %d ran no Python code for %.3g s: it is in "
                     "native code",
                     (int)pid, wait);
            return prb_error_remedy(err, "Use --method thread, or try again later");
        }
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    }
    return strcmp(said, "ok") == 0 ||
           prb_fail(err, PRB_UNSUPPORTED, "process %d cannot load the library: %s", (int)pid, said);
}

bool prb_inject_remote_exec(struct prb_proc *proc, struct prb_modules *modules,
                            const struct prb_delivery *delivery,
                            const struct prb_inject_options *options, struct prb_error *err)
{
    struct prb_mem *mem = prb_proc_mem(proc, err);
    struct prb_py *runtimes;
    size_t count;
    struct door door = {.proc = proc};
    if (!mem || !prb_py_find(modules, mem, &runtimes, &count, err))
        return false;
    bool found = find_door(&door, &runtimes[0], err);
    prb_py_free(runtimes, count);
    PRB_AUTO(files) struct files files = {0};
    return found && put_files(&door, delivery, options, &files, err) &&
           ring(&door, mem, files.script.path, err) &&
           await_answer(&door, &files, options->wait > 0 ? options->wait : WAIT_S, err);
}
