# proc_hostile.py - training processes and peers that break the rules
# SPDX-License-Identifier: BSD-3-Clause
import re
import signal
import socket
import time

import rig
from rig import Net, check, check_goes_on, end, start_forever

TENSOR = ("--tensor", "fc1.weight:1000000:f32")
GOOD = ("--tensor", "w:1000:f32")
OF_HEADERS = {"rx_magic", "rx_head_crc", "rx_version", "rx_type"}


def test_tensor_edited_during_its_push():
    with Net() as net:
        net.start_all()
        # A write is detected only between the CRC and the copy that it covers.
        editor = net.client(0, *TENSOR, "--misbehave", "edit", "--steps",
                            "1000")
        other = net.client(1, *TENSOR, "--no-check", "--steps", "1000")
        editor.wait_error(r"step 0 exact",
                          r"error poll SW_ECORRUPT: .*fc1\.weight.* was "
                          r"written while it was being pushed")
        # The sum of an edited tensor is undefined, but the other ranks' call
        # ends.
        other.wait_error(r"step 0 exact", r"SW_EPEER: .*rank 0")
        check_next(net)


def check_next(net):
    net.check_alive("a", "agent0", "agent1")
    clients = [net.client(r, *GOOD, name=f"next{r}") for r in (0, 1)]
    for c in clients:
        c.wait_ok()


def run_ring(how, pattern):
    """Check that the agent detaches the process, reports why, and serves the
    next one."""
    with Net() as net:
        net.start_all()
        bad = net.client(0, *GOOD, "--misbehave", how, "--steps", "2")
        other = net.client(1, *GOOD, "--steps", "9")
        bad.wait_error(r"step 0 exact",
                       rf"error wait SW_EPROTO: .*({pattern})")
        net.daemons["agent0"].await_text(
            rf"process {bad.pid}.*({pattern})")
        other.wait_error(
            rf"SW_EPEER: .*rank 0 \(node agent0\).*({pattern})")
        check_next(net)


def test_impossible_index_in_the_ring_of_submits():
    run_ring("ring-index", r"impossible index into the submit ring")


def test_impossible_index_in_the_ring_of_completions():
    """The agent reads that index only when the ring may be full."""
    with Net() as net:
        net.start_all()
        clients = [net.client(0, *GOOD, "--misbehave", "ring-done"),
                   net.client(1, *GOOD)]
        for c in clients:
            c.wait_ok()
        check_next(net)


def test_tensor_not_declared_in_a_ring():
    run_ring("ring-tensor", r"an undeclared tensor")


def test_tensor_twice_in_a_ring():
    run_ring("ring-twice", r"pushed a tensor twice")


def test_random_bytes_in_the_rings():
    """The ring that the agent reads first decides which error it reports."""
    run_ring("ring-random", r"impossible index|grew no growing tensor")


def test_more_is_missing_of_a_tensor_than_it_has():
    run_ring("grow-beyond", r"pushed a tensor with an invalid root or size of "
             r"missing bytes|grew a tensor backwards, beyond its size")


def test_process_that_dies_while_its_tensor_grows():
    """The rest of the tensor never arrives, and the waiting rank gets an error."""
    with Net() as net:
        net.start_all()
        bad = net.client(0, *GOOD, "--misbehave", "grow-die", "--steps", "2")
        other = net.client(1, *GOOD, "--steps", "9")
        code = bad.wait(rig.RUN_S)
        check(code == -signal.SIGKILL, f"{bad.name} ended with {code}")
        other.wait_error(r"step 0 exact", r"SW_EPEER: .*rank 0 \(node agent0\)"
                         r".*training process")
        check_next(net)


def test_process_that_dies_after_each_push():
    with Net(agents=1) as net:
        net.start_all()
        for i in range(5):
            c = net.client(0, *TENSOR, "--misbehave", "die", name=f"dead{i}")
            code = c.wait(rig.RUN_S)
            check(code == -signal.SIGKILL, f"{c.name} ended with {code}")
        net.client(0, *TENSOR).wait_ok()
        net.empty_stats("a")


# --- forged frames ---

def start_forge(net, link, victim):
    us, them = (1, 2) if victim == "agent" else (2, 1)
    forge = net.run("forge", rig.program("test/proc/proc_forge"),
                    net.path(f"link{link}"), net.folder,
                    f"10.77.{link}.{us}", f"10.77.{link}.{them}", victim)
    return forge


def stop_flood(forge):
    """Stop the flood; return the numbers of frames sent, by the counter that
    they must raise and by kind."""
    forge.say()
    forge.await_out("flooded")
    sent = {}
    for kind, counter, n in re.findall(r"sent (\w+) (\S+) (\d+)", forge.out()):
        sent.setdefault(counter, {})[kind] = int(n)
    return sent


def stop_forge(forge):
    forge.say()
    forge.wait_ok()


def not_counted(sent, before, stats):
    """Return the counters that have grown less than the frames sent, as text."""
    out = []
    # A forger ignores grants, so the victim drops some frames with good
    # headers.
    beyond = stats["rx_credit"] - before["rx_credit"]
    for counter, kinds in sent.items():
        grown = stats.get(counter, 0) - before.get(counter, 0)
        if counter != "-" and grown + (
                0 if counter in OF_HEADERS else beyond) < sum(kinds.values()):
            out.append(f"{counter} has grown by {grown} after {kinds}")
    return out


def await_counted(net, sent, before):
    """Wait for the count; the last frames may still be in flight."""
    check(all(n for kinds in sent.values() for n in kinds.values()),
          f"not all kinds were sent: {sent}")
    until = time.monotonic() + rig.STOP_S
    while True:
        stats = net.stats("a")
        missing = not_counted(sent, before, stats)
        if not missing:
            return stats
        check(time.monotonic() < until, f"{missing}; rx_credit is "
              f"{stats['rx_credit']}")


def test_garbage_to_the_agents_socket():
    """Two hundred connections: the log reports some, and the number of the
    others."""
    with Net(agents=1) as net:
        net.start_all()
        for _ in range(200):
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
                s.connect(net.socket("agent0"))
                s.send(bytes(100))
                s.settimeout(rig.START_S)
                s.recv(10000)  # the reason for the refusal
        p = net.daemons["agent0"]
        p.await_text(r"190 more processes were refused")
        check(p.log().count("is not from libsumwire") == 10, p.log())
        rig.run_steps(net, *rig.SMALL)


def test_forged_frames_to_a_server():
    with Net() as net:
        net.add_port("a", 2, "listen")
        net.start_all()
        rig.run_steps(net)
        before = net.stats("a")
        clients = start_forever(net)  # their sessions will be guessed
        forge = start_forge(net, 2, "server")
        forge.await_out("guessed")
        check_goes_on(clients)
        end(net, clients)
        rig.run_steps(net, name="beside", steps=50)
        sent = stop_flood(forge)
        stats = await_counted(net, sent, before)
        stop_forge(forge)
        check("refused SW_EVERSION: agent speaks protocol versions 7 to 7, "
              "server 1 to 1" in forge.out(), "versions in the refusal")
        check(len(sent["rx_length"]) == 5 and len(sent) > 12,
              f"not all kinds were sent: {sent}")
        check(stats["rx_source"] > 0,
              "no session of another address was guessed")
        net.daemons["a"].await_text(r"job forged: closed")
        check("\x1b" not in net.daemons["a"].log() and
              not re.search(r"^0\.0 error", net.daemons["a"].log(), re.M),
              "a peer wrote lines of its own into the log")
        grown = net.stats("a")["memory_resident_bytes"] - \
            before["memory_resident_bytes"]
        # One stock serves all small declarations (apps/node/reserve.h), not one
        # per job.
        check(grown < 8 << 20, f"the server has grown by {grown} bytes")
        check(net.stats("a")["memory_used_bytes"] == 0, "memory is in use")
        check_next(net)


def test_joins_of_a_stranger():
    """A server drops nearly all of some 10,000 JOINs a second at low cost; a
    job continues."""
    with Net() as net:
        net.add_port("a", 2, "listen")
        net.start_all()
        clients = start_forever(net)
        before, logged = net.stats("a"), len(net.daemons["a"].log())
        forge = start_forge(net, 2, "joins")
        forge.await_out("flooding")
        forge.await_out("many joins")
        check_goes_on(clients, 300)
        forge.say()
        forge.await_out(r"joins \d+")
        n = int(re.search(r"joins (\d+)", forge.out())[1])
        stats = net.stats("a")
        check(stats["joins_limited"] > n // 2,
              f"{stats['joins_limited']} of {n} JOINs were dropped")
        check(stats["sessions_opened"] == before["sessions_opened"],
              "a stranger has a session")
        logged = len(net.daemons["a"].log()) - logged
        check(logged < 20000, f"{logged} bytes of log for {n} JOINs")
        stop_forge(forge)
        end(net, clients)
        check_next(net)


def test_forged_frames_to_an_agent():
    with Net(agents=1, job={"join_timeout": "8s"}) as net:
        forge = start_forge(net, 0, "agent")
        net.start("agent0")
        forge.await_out("flooding")
        c = net.client(0, *GOOD)
        c.wait_error(r"SW_ETIMEDOUT: waited 8 s for server a "
                     r"\(10\.77\.0\.1:5700\), which does not answer")
        sent = stop_flood(forge)
        stats = net.stats("agent0")
        for counter, kinds in sent.items():
            check(counter == "-" or not sum(kinds.values()) or
                  stats[counter] > 0, f"{counter} is 0 after {kinds}")
        stop_forge(forge)
        net.start("a")
        net.client(0, *GOOD, name="later").wait_ok()


if __name__ == "__main__":
    rig.main(dict(globals()))
