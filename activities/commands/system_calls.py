"""The filter of system calls for sandboxed commands, as a program that bubblewrap loads.

It denies what changes the machine or widens what the kernel can be attacked with, and what builds
and tests do not need. Debuggers and leak checkers work on the command's own processes.
"""

import errno
from functools import cache

import seccompy
from seccompy.syscalls import X86_64_SYSCALLS

NEEDLESS = (
    *("bpf", "perf_event_open", "userfaultfd", "fanotify_init", "lookup_dcookie", "syslog"),
    *("io_uring_setup", "io_uring_enter", "io_uring_register"),
    *("add_key", "keyctl", "request_key", "memfd_secret"),
    *("mount", "umount2", "pivot_root", "chroot", "mount_setattr", "move_mount", "open_tree"),
    *("fsopen", "fsconfig", "fsmount", "fspick", "open_tree_attr", "statmount", "listmount"),
    *("unshare", "setns", "pidfd_getfd", "kcmp", "open_by_handle_at", "name_to_handle_at"),
    *("kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "reboot"),
    *("swapon", "swapoff", "acct", "quotactl", "quotactl_fd", "vhangup", "nfsservctl"),
    *("settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "sethostname"),
    *("setdomainname", "iopl", "ioperm", "modify_ldt", "uselib", "ustat", "sysfs", "_sysctl"),
    *("create_module", "get_kernel_syms", "query_module", "move_pages", "migrate_pages"),
)
"""Denied whatever their arguments; a name that a kernel's architecture lacks is passed over."""
ON_PROCESSES = {"ptrace": 1, "process_vm_readv": 0, "process_vm_writev": 0}
"""Denied for the sandbox's first process, which is bubblewrap's; with the argument that names it.

Each other process that a command sees is its own.
"""
NAMESPACES = (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000)
"""The flags of `clone` for new namespaces: mount, cgroup, uts, ipc, user, pid, network."""
TERMINAL_INPUT = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX, which write into the input of a terminal."""
MAX_SEGMENT = 65_536
"""Largest System V segment, in bytes: while it is detached, no process shows its memory."""
FAMILIES = (1, 2, 10, 16)
"""Kinds of sockets that there are: local, IPv4, IPv6, netlink.

Some others, such as those between a virtual machine and its host, know no network namespaces.
"""
X32 = 0x40000000
"""Bit of a call's number that selects the ABI x32, whose own calls are 512 to 547."""


@cache
def system_call_filter() -> bytes:
    """Return the filter as BPF. Raises OSError: There is none for this machine's architecture."""
    calls = seccompy.Filter(default=seccompy.Action.ALLOW)
    for name in NEEDLESS:
        try:
            calls.errno(name, errno.EPERM)
        except ValueError:
            continue
    for name, argument in ON_PROCESSES.items():
        calls.errno(name, errno.EPERM, args=[_is_int(argument, 1)])
    for flag in NAMESPACES:
        has_flag = seccompy.ArgCmp(0, seccompy.CmpOp.MASKED_EQ, flag, mask=flag)
        calls.errno("clone", errno.EPERM, args=[has_flag])
    # A filter cannot read the flags of clone3; without it C libraries take clone.
    calls.errno("clone3", errno.ENOSYS)
    for request in TERMINAL_INPUT:
        calls.errno("ioctl", errno.EPERM, args=[_is_int(1, request)])
    for family in FAMILIES:
        calls.allow("socket", args=[_is_int(0, family)])
    calls.errno("socket", errno.EAFNOSUPPORT)
    is_large = seccompy.ArgCmp(1, seccompy.CmpOp.GT, MAX_SEGMENT)
    calls.errno("shmget", errno.EINVAL, args=[is_large])
    if seccompy.arch() == "x86_64":
        for number in [*X86_64_SYSCALLS.values(), *range(512, 548)]:
            calls.errno(number | X32, errno.ENOSYS)
    return calls.program


def _is_int(argument: int, value: int) -> seccompy.ArgCmp:
    """The condition that an `int` has the value: the kernel ignores the register's upper half."""
    return seccompy.ArgCmp(argument, seccompy.CmpOp.MASKED_EQ, value, mask=0xFFFFFFFF)
