/*
 * Runs a program and lets its Nth write to the file system go wrong.
 *
 *     faults HOW N FILE PROGRAM [ARGUMENT...]
 *
 * HOW is `kill` (SIGKILL right before the call) or the name of an error that the call fails with
 * instead of being made. Calls are counted over all threads of PROGRAM, not those of its children.
 * Their number is written to FILE. Returns when the last process that PROGRAM started is gone, with
 * PROGRAM's exit code, 128 + its signal, 97 when something still runs a minute after PROGRAM ended,
 * or 98 when this cannot be done here.
 *
 * seccomp stops exactly the calls that can write, so everything else runs at full speed. Children
 * inherit the filter, and a filtered call without a tracer fails with ENOSYS: so they are traced
 * too.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define STILL_ALIVE 97
#define CANNOT 98
#define PATIENCE 60

enum kind { ANY, ON_FILE, OPEN_AT, OPEN };

static const struct {
    long number;
    enum kind kind;
} calls[] = {
    {__NR_write, ON_FILE},      {__NR_pwrite64, ON_FILE},  {__NR_writev, ON_FILE},
    {__NR_pwritev, ON_FILE},    {__NR_pwritev2, ON_FILE},  {__NR_copy_file_range, ANY},
    {__NR_openat, OPEN_AT},     {__NR_ftruncate, ANY},     {__NR_truncate, ANY},
    {__NR_fsync, ANY},          {__NR_fdatasync, ANY},     {__NR_fallocate, ANY},
    {__NR_renameat2, ANY},      {__NR_unlinkat, ANY},      {__NR_linkat, ANY},
    {__NR_symlinkat, ANY},      {__NR_mkdirat, ANY},       {__NR_fchmod, ANY},
    {__NR_fchmodat, ANY},       {__NR_fchown, ANY},
#ifdef __NR_renameat
    {__NR_renameat, ANY},
#endif
#ifdef __NR_open
    {__NR_open, OPEN},          {__NR_creat, ANY},         {__NR_rename, ANY},
    {__NR_unlink, ANY},         {__NR_link, ANY},          {__NR_symlink, ANY},
    {__NR_mkdir, ANY},          {__NR_rmdir, ANY},         {__NR_chmod, ANY},
#endif
};
#define CALLS (sizeof calls / sizeof calls[0])

static const struct {
    const char *name;
    int number;
} errors[] = {{"ENOSPC", ENOSPC}, {"EIO", EIO}, {"EACCES", EACCES}};

static void cannot(const char *what) {
    fprintf(stderr, "faults: %s: %s\n", what, strerror(errno));
    _exit(CANNOT);
}

#define MAKES (O_CREAT | O_TRUNC)
#define LOAD(field) (struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, field)
#define JUMP(how, value, yes, no) (struct sock_filter) BPF_JUMP(BPF_JMP | how | BPF_K, value, yes, no)
#define RETURN(what) (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, what)
/* The lower half of an argument. */
#define ARGUMENT(n) (offsetof(struct seccomp_data, args) + 8 * (n))

/* In the child: from here on the listed calls stop for the tracer, opening only to write. */
static void filter(void) {
    const struct sock_filter after[] = {
        RETURN(SECCOMP_RET_ALLOW),
        /* open */
        LOAD(ARGUMENT(1)),
        JUMP(BPF_JSET, MAKES, 3, 2),
        /* openat */
        LOAD(ARGUMENT(2)),
        JUMP(BPF_JSET, MAKES, 1, 0),
        RETURN(SECCOMP_RET_ALLOW),
        RETURN(SECCOMP_RET_TRACE),
    };
    const size_t length = sizeof after / sizeof after[0];
    const size_t begin[] = {[ANY] = 6, [ON_FILE] = 6, [OPEN] = 1, [OPEN_AT] = 3};
    struct sock_filter program[CALLS + 8];
    program[0] = LOAD(offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < CALLS; i++) {
        const size_t far = CALLS - i - 1 + begin[calls[i].kind];
        program[i + 1] = JUMP(BPF_JEQ, calls[i].number, (unsigned char)far, 0);
    }
    memcpy(program + CALLS + 1, after, sizeof after);
    struct sock_fprog whole = {(unsigned short)(CALLS + 1 + length), program};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &whole))
        cannot("seccomp");
}

/* A pipe, a socket, an event or a terminal is no file. */
static int is_file(pid_t thread, long descriptor) {
    char path[64];
    struct stat found;
    snprintf(path, sizeof path, "/proc/%d/fd/%ld", thread, descriptor);
    return stat(path, &found) == 0 && S_ISREG(found.st_mode);
}

static int writes(pid_t thread, const struct __ptrace_syscall_info *call) {
    for (size_t i = 0; i < CALLS; i++)
        if ((long)call->seccomp.nr == calls[i].number)
            return calls[i].kind != ON_FILE || is_file(thread, (long)call->seccomp.args[0]);
    return 0;
}

static int is_thread_of(pid_t program, pid_t thread) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d", program, thread);
    return access(path, F_OK) == 0;
}

/* The call is not made and returns the error. */
static void fail(pid_t thread, int error) {
#if defined(__x86_64__)
    struct user_regs_struct registers;
    if (ptrace(PTRACE_GETREGS, thread, 0, &registers))
        cannot("registers");
    registers.orig_rax = (unsigned long long)-1;
    registers.rax = (unsigned long long)-error;
    if (ptrace(PTRACE_SETREGS, thread, 0, &registers))
        cannot("registers");
#elif defined(__aarch64__)
    struct user_regs_struct registers;
    int none = -1;
    struct iovec all = {&registers, sizeof registers}, number = {&none, sizeof none};
    if (ptrace(PTRACE_GETREGSET, thread, NT_PRSTATUS, &all))
        cannot("registers");
    registers.regs[0] = (unsigned long long)-error;
    if (ptrace(PTRACE_SETREGSET, thread, NT_PRSTATUS, &all) ||
        ptrace(PTRACE_SETREGSET, thread, NT_ARM_SYSTEM_CALL, &number))
        cannot("registers");
#else
#error "only x86_64 and aarch64"
#endif
}

static pid_t start(char **command) {
    int go[2];
    char byte = 0;
    if (pipe(go))
        cannot("pipe");
    pid_t child = fork();
    if (child < 0)
        cannot("fork");
    if (child == 0) {
        close(go[1]);
        if (read(go[0], &byte, 1) != 1)
            _exit(CANNOT);
        close(go[0]);
        filter();
        execvp(command[0], command);
        cannot(command[0]);
    }
    const long options = PTRACE_O_TRACESECCOMP | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                         PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL;
    if (ptrace(PTRACE_SEIZE, child, 0, options))
        cannot("ptrace");
    close(go[0]);
    if (write(go[1], &byte, 1) != 1)
        cannot("pipe");
    close(go[1]);
    return child;
}

static void too_late(int signal) {
    (void)signal;
    _exit(STILL_ALIVE);
}

int main(int count, char **words) {
    if (count < 5)
        return CANNOT;
    int error = 0;
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (strcmp(words[1], errors[i].name) == 0)
            error = errors[i].number;
    const long wanted = atol(words[2]);
    FILE *result = fopen(words[3], "we");
    if (!result)
        cannot(words[3]);
    const pid_t program = start(words + 4);
    signal(SIGALRM, too_late);
    long seen = 0;
    int code = CANNOT, status;
    pid_t thread;
    while ((thread = waitpid(-1, &status, __WALL)) > 0 || errno == EINTR) {
        if (thread <= 0)
            continue;
        if (!WIFSTOPPED(status)) {
            if (thread == program) {
                code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
                alarm(PATIENCE);
            }
            continue;
        }
        const int event = status >> 16, what = WSTOPSIG(status);
        if (event == PTRACE_EVENT_STOP && what != SIGTRAP) {
            ptrace(PTRACE_LISTEN, thread, 0, 0);
            continue;
        }
        if (event == PTRACE_EVENT_SECCOMP && is_thread_of(program, thread)) {
            struct __ptrace_syscall_info call;
            if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof call, &call) <= 0)
                cannot("the call");
            if (writes(thread, &call) && ++seen == wanted) {
                if (error)
                    fail(thread, error);
                else
                    kill(program, SIGKILL);
            }
        }
        ptrace(PTRACE_CONT, thread, 0, event ? 0 : what);
    }
    fprintf(result, "%ld\n", seen);
    fclose(result);
    return code;
}
