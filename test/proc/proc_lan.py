# proc_lan.py - jobs over kernel interfaces, and their failures
# SPDX-License-Identifier: BSD-3-Clause
import os
import re
import time

import lan
import rig
from lan import Lan, ip
from rig import (SMALL, check, check_goes_on, end, run_refused,
                 start_forever)

PUSH, RESULT, CONTROL = 16, 17, 8  # types; class (engine/wire/wire.h)


def run_all(net, *args):
    """Push at every rank; check every element of the sums."""
    clients = [net.client(r, *(args or SMALL), "--steps", "20")
               for r in range(net.n_agents)]
    for c in clients:
        c.wait_ok()


def take_down(net, name, device=None):
    """Take the interface down; wait for the daemon's log line, besides one from
    its start."""
    text = f"port lan: {device or name} is down"
    log = net.daemons[name].log
    before = log().count(text)
    ip("link", "set", "dev", name, "down")
    rig.wait_until(lambda: log().count(text) > before, rig.START_S,
                   f'"{text}" once more')


def check_payload(net, size):
    for name in net.servers + net.agents:
        check(f"payload: up to {size} B" in net.daemons[name].log(),
              f"{name} has not chosen the payload {size}")


def test_two_nodes_jumbo():
    with Lan(agents=1, mtu=9000) as net:
        net.start_all()
        check_payload(net, 8192)
        run_all(net)


def test_two_nodes_mtu_1500():
    with Lan(agents=1, mtu=1500) as net:
        net.start_all()
        check_payload(net, 1344)
        run_all(net)


def test_four_nodes():
    with Lan(agents=2, servers=2, mtu=3600) as net:
        net.start_all()
        check_payload(net, 3456)
        run_all(net)


def test_ipv6():
    """Three nodes send over a bridge, with a VLAN tag."""
    with Lan(agents=2, mtu=1500, is_v6=True, port={"vlan": "5"}) as net:
        net.start_all()
        check_payload(net, 1344)
        run_all(net)


def test_no_such_server_ipv6():
    with Lan(agents=1, is_v6=True, job={"join_timeout": "6s"}) as net:
        net.start("agent0")
        net.client(0, *SMALL).wait_error(r"server a \(\[fd00::1\]:5700\)")
        net.daemons["agent0"].await_text(
            r"no neighbour discovery answer from fd00::1 on port lan")


def test_lost_frames():
    with Lan(agents=2, port={"fault_loss": "1%", "fault_reorder": "1%"}) \
            as net:
        net.start_all()
        run_all(net)


def check_dscp(make):
    """PUSH from the agent, RESULT from the server: CS7 down to CS0."""
    tensors = [arg for c in range(8) for arg in
               ("--tensor", f"t{c}:4096:f32:{(1 << c) - 1}")]
    with make(agents=1) as net:
        net.start_all()
        seen = {"agent0": lan.Capture("agent0"), "a": lan.Capture("a")}
        net.client(0, *tensors, "--steps", "3").wait_ok()
        for name, kind in (("agent0", PUSH), ("a", RESULT)):
            frames = seen[name].frames()
            data = {(c, dscp) for k, c, dscp in frames if k == kind}
            check(data == {(c, 8 * (7 - c)) for c in range(8)},
                  f"{name}: classes and DSCP of its data are {sorted(data)}")
            control = {dscp for _, c, dscp in frames if c == CONTROL}
            check(control == {8 * 7},
                  f"{name}: DSCP of its control frames is {control}")


def test_dscp_by_class():
    check_dscp(Lan)


def test_vlan():
    with Lan(agents=2, port={"vlan": 7}) as net:
        net.start_all()
        run_all(net)


def test_other_vlan():
    with Lan(agents=1, port={"vlan": 7}, job={"join_timeout": "6s"}) as net:
        net.ini["agent0"]["port lan"]["vlan"] = 8
        net.start_all()
        net.client(0, *SMALL).wait_error(r"server a \(10\.9\.0\.1:5700\)")
        net.daemons["agent0"].await_text(
            r"no ARP answer from 10\.9\.0\.1 on port lan")


def test_interface_down_and_up():
    with Lan(agents=2) as net:
        net.start_all()
        clients = start_forever(net)
        for name in ("agent1", "a"):
            log = net.daemons[name].log
            n_before = log().count(" is up")
            take_down(net, name)
            time.sleep(0.5)
            ip("link", "set", "dev", name, "up")
            rig.wait_until(lambda: log().count(" is up") > n_before,
                           rig.START_S, "line that it is up")
            check_goes_on(clients)
        end(net, clients)


def test_interface_vanishes_and_returns():
    with Lan(agents=2) as net:
        net.start_all()
        clients = start_forever(net)
        net.unplug("agent1")
        net.daemons["agent1"].await_text("port lan: agent1 was removed")
        net.plug("agent1")
        check_goes_on(clients)
        for _ in range(5):
            net.replug("agent1")
            check_goes_on(clients)
        end(net, clients)


def test_interface_stays_down():
    with Lan(agents=2, job={"dead_after": "2s"}) as net:
        net.start_all()
        clients = start_forever(net)
        ip("link", "set", "dev", "agent1", "down")
        clients[0].wait_error(r"SW_EPEER: .*rank 1 \(node agent1\)")
        clients[1].wait_error(r"SW_ESERVER: .*server a")
        ip("link", "set", "dev", "agent1", "up")
        run_all(net)


def test_no_such_server():
    with Lan(agents=1, job={"join_timeout": "6s"}) as net:
        net.start("agent0")
        net.client(0, *SMALL).wait_error(r"server a \(10\.9\.0\.1:5700\)")
        net.daemons["agent0"].await_text(
            r"no ARP answer from 10\.9\.0\.1 on port lan")


def test_wrong_gateway():
    with Lan(agents=1, port={"gateway": "10.9.0.77"},
             job={"join_timeout": "6s"}) as net:
        net.ini["agent0"]["server a"]["ip"] = "10.10.0.1"
        net.start_all()
        net.client(0, *SMALL).wait_error(r"server a \(10\.10\.0\.1:5700\)")
        net.daemons["agent0"].await_text(
            r"no ARP answer from gateway 10\.9\.0\.77 on port lan")


def test_two_nodes_with_one_address():
    with Lan(agents=2, job={"join_timeout": "6s"}) as net:
        net.ini["agent1"]["port lan"]["ip"] = "10.9.0.101/24"
        net.start_all()
        for name in net.agents:
            net.daemons[name].await_text(
                r"port lan: two nodes have our address 10\.9\.0\.101: "
                r"([0-9a-f]{2}:){5}[0-9a-f]{2} has it too")


def test_no_such_interface():
    with Lan(agents=1) as net:
        net.ini["a"]["port lan"]["device"] = "eth7"
        run_refused(net, "a", r"there is no interface \"eth7\"; this machine has: "
                    r".*agent0")


def test_payload_that_does_not_fit():
    with Lan(agents=1, mtu=1500, job={"payload": "8192"}) as net:
        run_refused(net, "agent0", r"payload = 8192 does not fit the MTU of "
                    r"agent0: at most 1344")


def check_agreed(net, size):
    check(f"job job: runs with a payload of {size} B" in
          net.daemons["a"].log(), f"the job has no payload of {size}")


def test_switch_with_a_smaller_mtu():
    """The path carries less than its ends; probes find the limit."""
    with Lan(agents=1) as net:
        ip("link", "set", "dev", "a-lan", "mtu", "1500")
        net.start_all()
        run_all(net)
        check_agreed(net, 1408)


def run_unlike(*mtus, seconds=0):
    """Run a server and two agents, each with an MTU of its own. Return the
    payload, and the Mb/s of results that an agent gets in @seconds."""
    with Lan(agents=2) as net:
        for name, mtu in zip(("a", "agent0", "agent1"), mtus):
            ip("link", "set", "dev", name, "mtu", str(mtu))
        net.start_all()
        run_all(net)
        payload = min(8192, (min(mtus) - 98) // 64 * 64)
        check_agreed(net, payload)
        return payload, rate_of(net, seconds) if seconds else 0


def rate_of(net, seconds):
    clients = [net.client(r, "--tensor", "w:1000000:f32", "--steps", "1000000")
               for r in range(net.n_agents)]
    for c in clients:
        c.await_out("step 1 exact")
    begin, had = time.monotonic(), net.stats("agent0")["result_bytes"]
    time.sleep(seconds)
    took = time.monotonic() - begin
    rate = (net.stats("agent0")["result_bytes"] - had) * 8e-6 / took
    end(net, clients)
    return rate


def test_unlike_mtus():
    run_unlike(9000, 1450, 1280)


@rig.is_long
def test_mtus():
    """Print the rate with each MTU, alone and in mixed jobs."""
    for mtu in (1280, 1400, 1420, 1450, 1500, 4096, 9000, 9216):
        for mtus in (mtu, mtu, mtu), (9216, 1500, mtu):
            payload, rate = run_unlike(*mtus, seconds=2)
            print(f"MTU {mtus}: payload {payload}, {rate:.0f} Mb/s", flush=True)


def shrink(name):
    """Reduce the MTU of a node's interface in mid-job; small frames still pass."""
    with Lan(agents=1, job={"dead_after": "8s"}) as net:
        net.start_all()
        clients = start_forever(net)
        ip("link", "set", "dev", name, "mtu", "1400")
        net.daemons[name].await_text(
            f"port lan: {name} has an MTU of 1400 now: frames with a payload "
            f"of more than 1280 B are lost")
        clients[0].wait_error(
            r"SW_EIO: .*packets of 8274 B \(payload 8192\) no longer pass "
            r"from .*10\.9\.0\.1\b.*, smaller ones do")


def test_mtu_of_the_server_falls():
    shrink("a")


def test_mtu_of_the_agent_falls():
    shrink("agent0")


def test_path_below_the_least():
    with Lan(agents=1, job={"join_timeout": "4s"}) as net:
        ip("link", "set", "dev", "a-lan", "mtu", "1200")
        net.start_all()
        net.client(0, *SMALL).wait_error(
            r"server a .*which answers, but not to packets of 1234 B")


def test_mtu_that_is_too_small():
    with Lan(agents=1, mtu=1249) as net:
        run_refused(net, "a", r"a has an MTU of 1249; .* need 1250")


def test_idle_server_sleeps_until_a_frame_comes():
    def switches(pid):
        """Return how often its threads have gone to sleep."""
        n = 0
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/status",
                      encoding="ascii") as f:
                n += int(re.search(r"\nvoluntary_ctxt_switches:\s*(\d+)",
                                   f.read()).group(1))
        return n

    with Lan(agents=1) as net:
        net.start_all()
        run_all(net)
        time.sleep(0.5)
        pid = net.daemons[net.servers[0]].pid
        before, start = switches(pid), time.monotonic()
        time.sleep(2)
        a_second = (switches(pid) - before) / (time.monotonic() - start)
        check(a_second < 1000, f"it looked {a_second:.0f} times a second")
        run_all(net)


def test_kernel_has_our_address():
    with Lan(agents=1) as net:
        ip("address", "add", "10.9.0.1/24", "dev", "a")
        net.start("a")
        net.daemons["a"].await_text(r"the kernel has our address on a too")


if __name__ == "__main__":
    lan.enter()
    rig.main(dict(globals()))
