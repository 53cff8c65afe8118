/*
 * Futures and tasks of the C module: FutureObj_HEAD and TaskObj of Modules/_asynciomodule.c, stated
 * here member by member (the same in all versions unless a line says so; read in every release tag
 * 3.6.0 to 3.14.7), and checked against debug information by tests/layout/test_stated.py.
 */
#if PY_MINOR_VERSION >= 6
struct asyncio_task {
    PyObject ob_base;
    PyObject *task_loop;
#if PY_MINOR_VERSION >= 7
    PyObject *task_callback0, *task_context0;
#endif
    PyObject *task_callbacks, *task_exception;
#if PY_VERSION_HEX >= 0x030a0600
    PyObject *task_exception_tb;
#endif
    PyObject *task_result, *task_source_tb;
#if PY_MINOR_VERSION >= 9
    PyObject *task_cancel_msg;
#endif
#if PY_MINOR_VERSION >= 13
    PyObject *task_cancelled_exc;
#if PY_MINOR_VERSION >= 14
    PyObject *task_awaited_by;
#endif
    int task_state;
#if PY_MINOR_VERSION >= 14
    char task_is_task, task_awaited_by_is_set;
    unsigned task_log_tb : 1;
#else
    unsigned task_log_tb : 1;
#endif
    unsigned task_blocking : 1, task_must_cancel : 1, task_log_destroy_pending : 1;
    int task_num_cancels_requested;
#else
    int task_state, task_log_tb, task_blocking;
    PyObject *dict, *task_weakreflist;
#if PY_MINOR_VERSION >= 11
    PyObject *task_cancelled_exc;
#elif PY_MINOR_VERSION >= 9
    _PyErr_StackItem task_cancelled_exc_state;
#endif
#endif
    PyObject *task_fut_waiter, *task_coro;
#if PY_MINOR_VERSION >= 8
    PyObject *task_name;
#endif
#if PY_MINOR_VERSION >= 7
    PyObject *task_context;
#endif
#if PY_MINOR_VERSION <= 12
    int task_must_cancel, task_log_destroy_pending;
#endif
#if PY_MINOR_VERSION == 11 || PY_MINOR_VERSION == 12
    int task_num_cancels_requested;
#endif
#if PY_MINOR_VERSION >= 14
    struct llist_node task_node;
#if FREE_THREADED
    uintptr_t task_tid;
#endif
#endif
};
#endif

static void asyncio_fields(void)
{
#if PY_MINOR_VERSION >= 6
    AT(asyncio_task, loop, struct asyncio_task, task_loop);
    AT(asyncio_task, callbacks, struct asyncio_task, task_callbacks);
    AT(asyncio_task, state, struct asyncio_task, task_state);
    AT(asyncio_task, fut_waiter, struct asyncio_task, task_fut_waiter);
    AT(asyncio_task, coro, struct asyncio_task, task_coro);
    PLACE(asyncio_task, size, sizeof(struct asyncio_task));
#if PY_MINOR_VERSION >= 7
    AT(asyncio_task, callback0, struct asyncio_task, task_callback0);
#endif
#if PY_MINOR_VERSION >= 8
    AT(asyncio_task, name, struct asyncio_task, task_name);
#endif
#if PY_MINOR_VERSION >= 11
    AT(asyncio_task, cancels, struct asyncio_task, task_num_cancels_requested);
#endif
#if PY_MINOR_VERSION <= 12
    AT(asyncio_task, must_cancel, struct asyncio_task, task_must_cancel);
#endif
#endif
#if PY_MINOR_VERSION >= 14
    AT(asyncio_task, awaited_by, struct asyncio_task, task_awaited_by);
    AT(asyncio_task, awaited_by_is_set, struct asyncio_task, task_awaited_by_is_set);
    PLACE(asyncio_task, node, offsetof(struct asyncio_task, task_node));
    AT(llist_node, next, struct llist_node, next);
    AT(llist_node, prev, struct llist_node, prev);
    PLACE(interp, asyncio_tasks, offsetof(PyInterpreterState, asyncio_tasks_head));
    PLACE(thread, asyncio_tasks, offsetof(_PyThreadStateImpl, asyncio_tasks_head));
    AT(thread, asyncio_loop, _PyThreadStateImpl, asyncio_running_loop);
    AT(thread, asyncio_task, _PyThreadStateImpl, asyncio_running_task);
#endif
}
