"""Ways out of the sandbox, tried from inside: a script for any Python that needs no packages.

Each function is a way. It returns what it reached, or nothing, and an OSError is nothing. The
script prints a JSON object of what each way reached. Argument 1 is JSON: the numbers of system
calls, the worker's process id and command line, a port on which it listens, the name of a local
socket, a path.
"""

import ctypes
import errno
import json
import os
import resource
import signal
import socket
import stat
import sys
import time
from pathlib import Path

GIVEN = json.loads(sys.argv[1]) if __name__ == "__main__" else {}
LIBC = ctypes.CDLL(None, use_errno=True)
SECRET = "sesame-open-42"


def call(name, *arguments):
    """Make a system call. Raises OSError; return nothing if the kernel does not have it."""
    if name not in GIVEN["calls"]:
        return -1
    found = LIBC.syscall(ctypes.c_long(GIVEN["calls"][name]), *map(ctypes.c_void_p, arguments))
    if found < 0:
        raise OSError(ctypes.get_errno(), name)
    return found


def denied(name, *arguments, error=errno.EPERM):
    """Make a call that fails otherwise, or succeeds, without the filter."""
    try:
        return f"{name} gave {call(name, *arguments)}" if name in GIVEN["calls"] else None
    except OSError as failed:
        return None if failed.errno == error else f"{name} was made: {failed}"


def names(folder):
    return [each.name for each in Path(folder).iterdir()]


def environment():
    return [name for name, value in os.environ.items() if SECRET in value]


def environments_of_processes():
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if SECRET.encode() in path.read_bytes():
                return str(path)
        except OSError:
            continue
    return None


def command_lines_of_processes():
    lines = [path.read_text() for path in Path("/proc").glob("[0-9]*/cmdline")]
    return [line for line in lines if line == GIVEN["line"]]


def processes_of_the_machine():
    return [pid for pid in names("/proc") if pid.isdecimal() and int(pid) > 200]


def kill_the_worker():
    os.kill(GIVEN["worker"], signal.SIGKILL)
    return "killed"


def root_of_the_first_process():
    return [name for name in names("/proc/1/root") if name in ("home", "root", "var", "work")]


def rights_of_the_first_process():
    status = Path("/proc/1/status").read_text()
    rights = [line.split() for line in status.splitlines() if line.startswith("Cap")]
    return [line for line in rights if int(line[1], 16)] or ("Seccomp:\t2" not in status)


def settings_of_the_kernel():
    found = []
    for parent, _, files in os.walk("/proc/sys"):
        for name in files:
            try:
                os.close(os.open(Path(parent, name), os.O_WRONLY))
                found.append(name)
            except OSError:
                continue
    return found


def core_pattern():
    return Path("/proc/sys/kernel/core_pattern").write_text("|/bin/false")


def system_requests():
    return Path("/proc/sysrq-trigger").write_text("h")


def interrupts():
    return [str(each) for each in Path("/proc/irq").rglob("*") if os.access(each, os.W_OK)]


def memory_of_the_kernel():
    return Path("/proc/kcore").open("rb").read(1)


def messages_of_the_kernel():
    return denied("syslog", 3, 0, 0)


def devices_by_name():
    usual = {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm", "console"}
    return [
        name
        for name in names("/dev")
        if name not in usual | {"fd", "stdin"} and not name.startswith("std") and name != "core"
    ]


def devices_of_its_own():
    os.mknod("disk", 0o600 | stat.S_IFBLK, os.makedev(254, 0))
    return "made"


def character_devices():
    os.mknod("mem", 0o600 | stat.S_IFCHR, os.makedev(1, 1))
    return "made"


def files_in_dev():
    return Path("/dev/flood").write_bytes(b"x")


def mount():
    return denied("mount", 0, 0, 0, 0, 0)


def umount():
    return denied("umount2", 0, 0)


def mounts_by_descriptor():
    return denied("fsopen", 0, 0) or denied("open_tree", -1, 0, 0) or denied("move_mount", 0)


def attributes_of_mounts():
    return denied("mount_setattr", -1, 0, 0, 0, 0)


def change_of_root():
    return denied("chroot", 0) or denied("pivot_root", 0, 0)


def user_namespace():
    return denied("unshare", 0x10000000)


def mount_namespace():
    return denied("unshare", 0x00020000)


def cloned_namespace():
    return denied("clone", 0x10000000 | signal.SIGCHLD, 0, 0, 0, 0)


def cloned_namespace_by_structure():
    return denied("clone3", 0, 0, error=errno.ENOSYS)


def namespace_of_the_first_process():
    descriptor = os.open("/proc/1/ns/user", os.O_RDONLY)
    return denied("setns", descriptor, 0)


def become_root():
    os.setuid(0)
    return "root"


def become_another_group():
    os.setgroups([0])
    return "root's group"


def new_privileges():
    status = Path("/proc/self/status").read_text()
    return None if "NoNewPrivs:\t1" in status else status


def setuid_programs():
    return None if os.statvfs("/usr/bin").f_flag & os.ST_NOSUID else "they count"


def own_capabilities():
    status = Path("/proc/self/status").read_text().splitlines()
    return [line for line in status if line.startswith("Cap") and int(line.split()[1], 16)]


def ownership():
    Path("mine").touch()
    os.chown("mine", 0, 0)
    return "given to root"


def internet_socket():
    socket.create_connection(("127.0.0.1", GIVEN["port"]), 1)
    return "connected"


def datagrams():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"tea", ("192.0.2.1", 9))
    return "sent"


def abstract_socket():
    with socket.socket(socket.AF_UNIX) as client:
        client.connect("\0" + GIVEN["abstract"])
    return "connected"


def socket_files():
    places = [Path(each) for each in ("/run", "/var/run", "/tmp", GIVEN["beside"])]
    return [str(path) for place in places if place.exists() for path in place.rglob("*")]


def raw_socket():
    socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)
    return "opened"


def packets():
    socket.socket(17, socket.SOCK_RAW)
    return "opened"


def socket_to_the_host_of_a_machine():
    return denied("socket", 40, 1, 0, error=errno.EAFNOSUPPORT)


def sockets_of_other_kinds():
    kinds = [family for family in range(64) if family not in (1, 2, 10, 16)]
    return [each for each in kinds if denied("socket", each, 2, 0, error=errno.EAFNOSUPPORT)]


def trace_of_the_first_process():
    return denied("ptrace", 16, 1, 0, 0) or denied("ptrace", 0x4206, 1, 0, 0)


def memory_of_the_first_process():
    return denied("process_vm_writev", 1, 0, 0, 0, 0, 0)


def descriptors_of_another():
    return denied("pidfd_getfd", -1, 0, 0)


def io_uring():
    return denied("io_uring_setup", 1, 0)


def bpf():
    return denied("bpf", 99, 0, 0)


def keyring():
    return denied("keyctl", 0, -3, 0) or denied("add_key", 0, 0, 0, 0, 0)


def requested_key():
    return denied("request_key", 0, 0, 0, 0)


def page_faults():
    return denied("userfaultfd", 1)


def performance_events():
    return denied("perf_event_open", 0, 0, -1, -1, 0)


def another_kernel():
    return denied("kexec_load", 0, 0, 0, 0) or denied("kexec_file_load", -1, -1, 0, 0, 0)


def modules():
    return denied("init_module", 0, 0, 0) or denied("finit_module", -1, 0, 0)


def restart():
    return denied("reboot", 0, 0, 0, 0)


def swap():
    return denied("swapon", 0, 0)


def clock():
    return denied("clock_settime", 0, 0) or denied("settimeofday", 0, 0)


def files_by_handle():
    return denied("open_by_handle_at", -1, 0, 0)


def input_of_a_terminal():
    master, _ = os.openpty()
    return denied("ioctl", master, 0x5412, 0)


def another_abi():
    if GIVEN["machine"] != "x86_64":
        return None
    LIBC.syscall(ctypes.c_long(0x40000000 | 521), *map(ctypes.c_void_p, (16, 1, 0, 0)))
    return None if ctypes.get_errno() in (errno.ENOSYS, errno.EPERM) else "made"


def files_of_others():
    places = ["/root", "/home", "/var", "/sys", "/etc/shadow", "/proc/1/root/var", GIVEN["beside"]]
    return [place for place in places if Path(place).exists()]


def symbolic_link():
    Path("aside").symlink_to(GIVEN["beside"])
    return Path("aside").read_text()


def hard_link():
    os.link("/usr/bin/env", "hard")
    return "made"


def parent_of_the_workspace():
    return [each for each in names("/proc/self/cwd/..") if each in ("root", "home", "var")]


def programs_of_the_machine():
    with Path("/usr/bin/env").open("r+b"):
        return "opened for writing"


def limits():
    _, most = resource.getrlimit(resource.RLIMIT_NPROC)
    resource.setrlimit(resource.RLIMIT_NPROC, (most + 1, most + 1))
    return "raised"


def core_dumps():
    return None if resource.getrlimit(resource.RLIMIT_CORE) == (0, 0) else "written"


def priority():
    os.setpriority(os.PRIO_PROCESS, 0, -20)
    return "raised"


def protection_from_running_out_of_memory():
    Path("/proc/self/oom_score_adj").write_text("-1000")
    return "never chosen"


def large_segment():
    return denied("shmget", 0, 100_000_000, 0o1600, error=errno.EINVAL)


def pages_in_a_segment():
    return None if call("shmget", 0, 4096, 0o1600) >= 0 else "none is to be had"


def own_child_can_be_traced():
    """A debugger and a leak checker need this."""
    if (child := os.fork()) == 0:
        time.sleep(5)
        os._exit(0)
    try:
        call("ptrace", 0x4206, child, 0, 0)
    except OSError as failed:
        return str(failed)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def try_way(way):
    try:
        return way()
    except (OSError, ValueError):
        return None


if __name__ == "__main__":
    ways = [
        each
        for each in dict(globals()).values()
        if callable(each) and getattr(each, "__module__", "") == "__main__"
        if each not in (call, denied, names, try_way)
    ]
    print(json.dumps({way.__name__: try_way(way) for way in ways}, default=str))
