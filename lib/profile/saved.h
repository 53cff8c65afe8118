/* The tables of a profile in a SQLite file: format/sqlite.c writes them, saved.c reads them. */
#ifndef PRB_PROFILE_SAVED_H
#define PRB_PROFILE_SAVED_H

#define PRB_SAVED_VERSION 1
/* name, columns; ids count from 0, and refer to entries of tables before */
#define PRB_SAVED_TABLES(T)                                                                        \
    T(meta, "key TEXT PRIMARY KEY, value")                                                         \
    T(processes, "id INTEGER PRIMARY KEY, pid, ppid, rank, command, python, start, end, ended")    \
    T(threads, "id INTEGER PRIMARY KEY, process, tid, thread_id, name, samples, gil_samples, "     \
               "idle_samples, dropped, cpu_ns")                                                    \
    T(functions, "id INTEGER PRIMARY KEY, kind, name, qualname, filename, short_filename, "        \
                 "first_line")                                                                     \
    T(frames, "id INTEGER PRIMARY KEY, function, line")                                            \
    T(stacks, "id INTEGER PRIMARY KEY, parent, frame")                                             \
    T(weights, "thread, stack, samples, ns")                                                       \
    T(stays, "thread, stack, state, start_ns, end_ns, samples, ns")

#endif
