# proc_systemd.py - the systemd units, under a systemd of their own
# SPDX-License-Identifier: BSD-3-Clause
"""systemd is PID 1 in namespaces of its own, over a copy of this machine's
files that keeps writes (overlayfs) for the duration of the test. It starts a
server and two agents on three ports of a bridge; one is a port of the kernel's
UDP, whose unit has no capability. An ordinary user trains; an agent is killed
and restarts; all are stopped. The script inside reports the events line by
line."""
import glob
import os
import re
import shutil
import subprocess
import tempfile

import rig
from rig import Skip, check

INIT = r"""
set -e
cd "$1"
mount --make-rprivate /
mount -t tmpfs tmpfs .
mkdir upper work root
mount -t overlay overlay -o lowerdir=/,upperdir=upper,workdir=work root
cp -a "$2/." root/
mount --bind "$2/try.log" root/try.log
mount -t proc proc root/proc
mount --bind -o ro /proc/sys root/proc/sys
mount -t sysfs -o ro sysfs root/sys
mount -t tmpfs tmpfs root/run
mount -t tmpfs tmpfs root/sys/fs/cgroup
mkdir root/sys/fs/cgroup/systemd root/sys/fs/cgroup/unified
mount -t cgroup -o none,name=systemd cgroup root/sys/fs/cgroup/systemd
mount -t cgroup2 cgroup2 root/sys/fs/cgroup/unified
mount --rbind /dev root/dev
chroot root systemd-sysusers
exec env -i container=test PATH="$PATH" chroot root \
    "$(command -v systemd || echo /lib/systemd/systemd)" --unit=try.target
"""
TRY = r"""#!/bin/bash
exec > /try.log 2>&1
ip link add br0 type bridge
ip link set br0 up
for i in s0 w0 w1; do
    ip link add $i type veth peer name p$i
    ip link set p$i master br0
    ip link set $i up
    ip link set p$i up
done
ip addr add 10.5.8.102/24 dev w1
agents="sumwire-agent@w0 sumwire-agent@w1"
units="sumwire-server $agents"
echo '[node]' > /etc/sumwire/wrong.ini
systemctl start sumwire-agent@wrong || echo "wrong: refused"
systemctl start $units && echo started
for i in {1..300}; do
    [ -S /run/sumwire/w0.sock -a -S /run/sumwire/w1.sock ] && break
    sleep 0.2
done
systemctl show -p MainPID,User,ActiveState sumwire-server
for unit in server agent@ ras@; do
    cp /etc/systemd/system/sumwire-$unit.service /tmp/of-${unit%@}.service
    systemd-analyze security --offline=yes --threshold=30 --no-pager \
        /tmp/of-${unit%@}.service > /dev/null && echo "little exposed"
done
systemctl show -p MainPID --value $units | while read -r pid; do
    [ -n "$pid" ] && echo "user $(stat -c %U /proc/$pid)" \
        "$(grep CapEff /proc/$pid/status)"
done
train() {
    SUMWIRE_AGENT_USER=sumwire \
        setpriv --reuid nobody --clear-groups /train --epochs 1 \
        --target-accuracy 0.5 --agent /run/sumwire/w0.sock \
        --agent /run/sumwire/w1.sock
    echo "trained: $?"
}
train
systemctl kill -s KILL sumwire-agent@w1
for i in {1..300}; do
    [ "$(systemctl show -p NRestarts --value sumwire-agent@w1)" = 1 ] &&
        systemctl -q is-active sumwire-agent@w1 && break
    sleep 0.2
done
echo "restarts: $(systemctl show -p NRestarts --value sumwire-agent@w1)"
sleep 1
train
for s in /run/sumwire/stats-*.sock; do
    timeout 30 sumwire stats "$s" > /dev/null && echo counters
done
ip link set lo up
systemctl start sumwire-ras.socket
for at in 127.0.0.1 ::1; do
    [ $at = ::1 ] && [ ! -s /proc/net/if_inet6 ] && continue
    echo "asking RAS at $at" && exec 3<>/dev/tcp/$at/28028
    printf 'CLIENT PROTOCOL 2\nSET FORMAT json\nSTATUS\n' >&3
    timeout 20 cat <&3
done
systemctl reload sumwire-server && echo "reload: $?"
echo "wrong: $(systemctl show -p NRestarts,ExecMainStatus sumwire-agent@wrong |
    sort | tr '\n' ' ')"
systemctl stop $units
systemctl show -p ActiveState,Result $units
journalctl --no-pager -q -u 'sumwire*'
echo "seen to the end"
systemctl poweroff --force --force
"""

UNITS = {
    "try.service": "[Unit]\nDefaultDependencies=no\nRequires=basic.target\n"
                   "After=basic.target dbus.socket\n"
                   "[Service]\nType=oneshot\nExecStart=/try.sh\n",
    "try.target": "[Unit]\nRequires=try.service\nWants=dbus.socket\n",
    "network-online.target": "[Unit]\n",
}


def write(root, path, text, mode=0o644):
    path = root + path
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="ascii") as f:
        f.write(text)
    os.chmod(path, mode)


def ini(role, device, number, more=""):
    port = ("type = udp\nburst = 1" if device == "w1"
            else f"type = af_packet\ndevice = {device}")
    return (f"[node]\nrole = {role}\nname = {device}\n[job]\nagents = 2\n"
            f"[port a]\n{port}\nip = 10.5.8.{number}/24\n{more}")


def fill(root):
    """Install as a package does, and configure as an administrator does."""
    p = subprocess.run(
        ["meson", "install", "-C", rig.BUILD, "--no-rebuild", "--quiet",
         "--destdir", root], capture_output=True, text=True, check=False)
    check(p.returncode == 0, p.stderr)
    write(root, "/etc/sumwire/server.ini", ini("server", "s0", 1))
    for i in (0, 1):
        text = ini("agent", f"w{i}", 101 + i, "[server a]\nip = 10.5.8.1\n"
                   f"port = a\n[agent]\nsocket = /run/sumwire/w{i}.sock\n"
                   "users = nobody\n")
        write(root, f"/etc/sumwire/w{i}.ini", text.replace(
            "agents = 2\n", f"agents = 2\nagent = {i}\n"))
    write(root, "/try.sh", TRY, 0o755)
    shutil.copy(rig.example_train(), root + "/train")
    write(root, "/try.log", "")
    for name, text in UNITS.items():
        write(root, "/etc/systemd/system/" + name, text)
    # systemd reads the units of /usr and /usr/local; a build may have another
    # prefix.
    for unit in glob.glob(root + "/**/lib/systemd/system/sumwire*",
                          recursive=True):
        shutil.copy(unit, root + "/etc/systemd/system")
    with open(glob.glob(root + "/**/nic.conf", recursive=True)[0],
              encoding="ascii") as f:
        rights = f.read()
    for unit in "sumwire-server", "sumwire-agent@w0":
        write(root, f"/etc/systemd/system/{unit}.service.d/nic.conf", rights)


def boot(top, limit_s):
    """Return the output of the script inside, or the reason if it has none."""
    mnt, pack = top + "/mnt", top + "/pack"
    os.mkdir(mnt)
    os.mkdir(pack)
    fill(pack)
    try:
        p = subprocess.run(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--uts",
             "--ipc", "--cgroup", "--net", "bash", "-c", INIT, "init", mnt,
             pack], stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=limit_s, check=False)
        why = p.stderr
    except subprocess.TimeoutExpired:
        why = f"it runs after {limit_s} s"
    with open(pack + "/try.log", encoding="utf-8") as f:
        return f.read(), why


def test_units():
    if os.geteuid() != 0:
        raise Skip("only root may start a systemd in namespaces")
    if not os.path.exists("/lib/systemd/systemd"):
        raise Skip("systemd is not installed")
    top = tempfile.mkdtemp(prefix="sumwire-proc-", dir="/tmp")
    try:
        text, why = boot(top, 300)
    finally:
        shutil.rmtree(top)
    if not text:
        raise Skip(f"no systemd comes up in namespaces here: {why[-200:]}")
    for want in ("started", "seen to the end", "restarts: 1",
                 "User=sumwire", "wrong: refused", "reload: 0",
                 "asking RAS at", '"communicators": []',
                 "wrong: ExecMainStatus=78 NRestarts=0 ",
                 "]: server s0 is ready",
                 "]: /etc/sumwire/server.ini reloaded: nothing else"):
        check(want in text, f"no \"{want}\" in\n{text}")
    check(text.count("trained: 0") == 2, text)
    check(text.count("SERVER PROTOCOL 2") == text.count("asking RAS at"), text)
    check(text.count("user sumwire CapEff") == 3, text)
    check(text.count("system calls filtered") >= 3 and
          "not filtered" not in text, text)
    check(text.count("CapEff:\t0000000000000000") == 1, text)
    check(text.count("little exposed") == 3, text)
    check(len(re.findall(r"^counters$", text, re.M)) >= 3, text)
    check(text.count("ActiveState=inactive") == 3, text)
    check(text.count("Result=success") == 3, text)


if __name__ == "__main__":
    rig.main(dict(globals()))
