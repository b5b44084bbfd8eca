# proc_metrics.py - sumwire metrics and top, and the real Prometheus
# SPDX-License-Identifier: BSD-3-Clause
"""One job runs while all readers read. promtool and prometheus come from
Debian."""
import concurrent.futures
import fcntl
import json
import os
import pty
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import termios
import urllib.error
import urllib.request

import proc_coll
import rig
from proc_ps import UNIQUE, named, unique
from rig import SMALL, Net, check

OPEN = "application/openmetrics-text; version=1.0.0"
CONF = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../conf")


def tool(*args, text=None):
    if not shutil.which(args[0]):
        raise rig.Skip(f"there is no {args[0]}")
    p = subprocess.run(args, input=text, stdout=subprocess.PIPE, check=False,
                       stderr=subprocess.STDOUT, timeout=rig.START_S, text=True)
    check(p.returncode == 0, f"{args}: {p.stdout}")
    return p.stdout


def metrics(*args):
    return subprocess.run([rig.sumwire(), "metrics", *args], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=rig.RUN_S, text=True)


def get(url, accept="", method="GET"):
    request = urllib.request.Request(url, headers={"Accept": accept},
                                     method=method)
    with urllib.request.urlopen(request, timeout=rig.START_S) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def code_of(url, method="GET"):
    try:
        get(url, method=method)
    except urllib.error.HTTPError as e:
        return e.code
    return 200


def listen(net, name, *args):
    """Start a process that serves; return it and its address."""
    p = net.run(name, rig.sumwire(), "metrics", "--listen", "127.0.0.1:0",
                *args)
    return p, p.await_text(r"(http://127\.0\.0\.1:\d+/metrics)").group(1)


def values(text, family):
    return {labels: float(value) for labels, value in re.findall(
        rf"^{family}{{(.*)}} (\S+)$", text, re.MULTILINE)}


def check_open(text):
    """Check the rules of OpenMetrics that promtool does not."""
    check(text.endswith("\n# EOF\n") and text.count("# EOF") == 1, "no end")
    ended, family, rows = set(), None, set()
    for line in text.splitlines()[:-1]:
        if line.startswith("# HELP"):
            family = line.split()[2]
            check(family not in ended, f"{family} comes in two parts")
            ended.add(family)
        elif not line.startswith("#"):
            name, key = line.split("{")[0], line.rsplit(" ", 1)[0]
            check(re.fullmatch(f"{family}(_total|_bucket|_sum|_count)?",
                               name), line)
            check(key not in rows, f"twice: {key}")
            rows.add(key)
    check(len(rows) > 300, f"{len(rows)} rows")


def check_file(folder):
    path = os.path.join(folder, "sumwire.prom")
    p = metrics("--textfile", path)
    check(p.returncode == 0 and not p.stdout and not p.stderr, f"{p}")
    with open(path, encoding="utf-8") as f:
        text = f.read()
    left = [n for n in os.listdir(folder) if n.startswith("sumwire.prom.")]
    check(not left and os.stat(path).st_mode & 0o777 == 0o644, f"{left}")
    check(values(text, "sumwire_memory_quota_bytes")[
        f'daemon="{unique("a")}"'] > 0, "no quota")
    tool("promtool", "check", "metrics", text=text)
    check_open(metrics("--openmetrics").stdout)
    for args, said in ((("--textfile", "/nowhere/x"), "No such file"),
                       (("--listen", "127.0.0.1"), "no address like"),
                       (("--listen", "::1:80"), "no address like"),
                       (("--listen", "localhost:80"), "no address like"),
                       (("--listen", "192.0.2.1:80"), "assign requested"),
                       ((unique("none"),), "no daemon has this name")):
        p = metrics(*args)
        check(p.returncode in (1, 2) and said in p.stderr, f"{args}: {p}")


def check_times(text):
    """Check that buckets of a histogram grow, and that the last one counts all."""
    for family, mine in (("rtt_seconds", f'daemon="{unique("a")}"'),
                         ("late_seconds", f'daemon="{unique("a")}"'),
                         ("round_seconds", f'daemon="{unique("agent0")}"'),
                         ("job_member_late_seconds", f'node="{unique("agent0")}"')):
        buckets = [(row, n) for row, n in values(
            text, f"sumwire_{family}_bucket").items() if mine in row]
        check(len(buckets) >= 26, f"{family}: {buckets}")
        for (row, n), (after, more) in zip(buckets, buckets[1:]):
            check(n <= more or "+Inf" in row, f"{family}: {row}, {after}")
        n = sum(n for row, n in buckets if 'le="+Inf"' in row)
        count = sum(n for row, n in values(
            text, f"sumwire_{family}_count").items() if mine in row)
        took = sum(n for row, n in values(
            text, f"sumwire_{family}_sum").items() if mine in row)
        check(n == count > 0 and took > 0, f"{family}: {n}, {count}, {took}")


def check_job(text):
    """Check bytes of jobs, members and data classes, and the time of a stall."""
    server, agent = f'daemon="{unique("a")}"', f'daemon="{unique("agent0")}"'
    got = {}
    for family in ("class_rx_bytes", "class_rx_frames", "class_tx_bytes", "class_tx_frames",
                   "job_push_bytes", "job_result_bytes", "job_done_chunks",
                   "job_member_push_bytes", "job_member_result_bytes", "push_bytes",
                   "result_bytes"):
        got[family] = sum(n for row, n in values(text, f"sumwire_{family}_total").items()
                          if server in row)
        check(got[family] > 0, f"{family}: {got}")
    for whole, parts in (("push_bytes", ("class_rx_bytes", "job_push_bytes",
                                         "job_member_push_bytes")),
                         ("result_bytes", ("class_tx_bytes", "job_result_bytes",
                                           "job_member_result_bytes"))):
        for part in parts:  # the job runs on during the reading
            check(0.5 < got[part] / got[whole] < 2, f"{part} of {whole}: {got}")
    rows = [row for row in values(text, "sumwire_class_tx_bytes_total") if server in row]
    check(len(rows) == 8 and all('class="' in row for row in rows), f"{rows}")
    check(sum(n for row, n in values(text, "sumwire_rounds_total").items() if agent in row) > 0,
          "no rounds")
    rows = values(text, "sumwire_port_queue_tx_bytes_total")
    check(any(n > 0 and server in row and 'queue="0"' in row for row, n in rows.items()),
          f"queues: {rows}")
    for family in ("push_bytes_total", "result_bytes_total", "rtt_seconds", "tx_frames_total",
                   "rx_frames_total", "open"):  # an agent's session
        rows = values(text, f"sumwire_job_session_{family}")
        check(any(n > 0 and agent in row and 'server="a"' in row and 'lane="0"' in row
                  for row, n in rows.items()), f"{family}: {rows}")
    for family in ("stalls_credit_total", "stalled_credit_seconds_total", "stalls_grant_total",
                   "stalled_window_seconds_total", "job_open_slots",
                   "job_member_stalled_grant_seconds_total"):
        check(values(text, f"sumwire_{family}"), family)


def check_http(url):
    kind, text = get(url)
    check(kind.startswith("text/plain; version=0.0.4"), kind)
    ranks = values(text, "sumwire_job_ranks")
    check_job(text)
    check(ranks[f'daemon="{unique("a")}",job_name="{UNIQUE}",part="server"']
          == 2, f"{ranks}")
    kind, text = get(url, OPEN)
    check(kind.startswith("application/openmetrics-text"), kind)
    check_open(text)
    check_times(text)
    check(get(url, method="HEAD")[1] == "", "HEAD has a body")
    check(code_of(url + "/x") == 404 and code_of(url, "POST") == 405, "codes")
    busy = url.split("/")[2]
    p = metrics("--listen", busy)
    check(p.returncode == 1 and "in use" in p.stderr, f"{p}")


def check_crowd(url):
    """Open two hundred readers, and twenty that never read."""
    host, port = url.split("/")[2].split(":")
    idle = [socket.create_connection((host, int(port))) for _ in range(20)]
    for s in idle[:10]:
        s.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 50)
    with concurrent.futures.ThreadPoolExecutor(200) as pool:
        texts = list(pool.map(lambda _: get(url)[1], range(200)))
    check(all("sumwire_daemon_up" in t for t in texts), "a reader got less")
    for s in idle:
        s.close()


def said(*args):
    return subprocess.run([rig.sumwire(), *args], check=True, stdout=subprocess.PIPE,
                          timeout=rig.START_S, text=True).stdout


def check_top(net):
    """Check one frame, and a terminal: keys change the order and quit."""
    frame = rig.measured(
        lambda: said("top", "--once", "--interval", "0.3"),
        lambda text: (rate := re.search(
            rf"^{unique('a')[:13]} *server +up +([\d.]+)", text, re.MULTILINE)) and
        float(rate[1]) > 0.1)
    check("\x1b" not in frame and all(len(line) <= 80 for line in frame.splitlines()),
          frame)
    p = subprocess.run([rig.sumwire(), "top", "--once", "--interval", "0.1", unique("none")],
                       check=False, stdout=subprocess.PIPE, timeout=rig.START_S, text=True)
    check(p.returncode == 1 and "no daemon has this name" in p.stdout, f"{p}")
    inside, outside = pty.openpty()
    fcntl.ioctl(outside, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    modes = termios.tcgetattr(outside)
    with subprocess.Popen([rig.sumwire(), "top", "--interval", "0.2", UNIQUE],
                          stdin=outside, stdout=outside) as top:
        text = ""
        while "by loss" not in text:
            text += os.read(inside, 4096).decode()
            if text.count("sumwire top") == 2:
                os.write(inside, b"s")
                text += "\x1b[Hsumwire top"  # only once
        os.write(inside, b"q")
        check(top.wait(rig.STOP_S) == 0, "top did not end")
    check(termios.tcgetattr(outside) == modes, "top has left the modes")
    screen = text.split("\x1b[H")[2]
    check(screen.count("\x1b[K") <= 24 and "agent0" in screen and "q: quit)" in screen, screen)
    os.close(inside)
    os.close(outside)
    net.check_alive("a", "agent0", "agent1")


def query(url, expr):
    text = get(f"{url}/api/v1/query?query={urllib.request.quote(expr)}")[1]
    return json.loads(text)["data"]["result"]


def check_prometheus(net, folder, url):
    """Let the real Prometheus scrape us and evaluate our rules and dashboard."""
    if not shutil.which("prometheus"):
        raise rig.Skip("there is no prometheus")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        at = f"127.0.0.1:{s.getsockname()[1]}"
    conf = os.path.join(folder, "prometheus.yml")
    with open(conf, "w", encoding="utf-8") as f:
        json.dump({"global": {"scrape_interval": "1s",
                              "evaluation_interval": "1s"},
                   "rule_files": [os.path.join(CONF, "prometheus/alerts.yml")],
                   "scrape_configs": [{"job_name": "sumwire", "static_configs":
                                       [{"targets": [url.split("/")[2]]}]}]}, f)
    p = net.run("prometheus", "prometheus", "--config.file", conf,
                "--storage.tsdb.path", os.path.join(folder, "tsdb"),
                "--web.listen-address", at)
    p.await_text("ready to receive")
    api = f"http://{at}"
    rig.wait_until(lambda: query(
        api, f'rate(sumwire_push_bytes_total{{daemon="{unique("a")}"}}[30s]) '
        "> 0"), rig.START_S, "rate in Prometheus")
    # A busy daemon misses a scrape.
    rig.wait_until(lambda: [r["value"][1] for r in query(
        api, f'sumwire_daemon_up{{daemon=~"{UNIQUE}.*"}}')] == ["1"] * 3,
                   rig.START_S, "three daemons in Prometheus")
    with open(os.path.join(CONF, "grafana/sumwire.json"),
              encoding="utf-8") as f:
        board = json.load(f)
    for panel in board["panels"]:
        for target in panel["targets"]:
            expr = target["expr"].replace("$instance", ".*").replace(
                "$daemon", UNIQUE + ".*").replace("$__rate_interval", "30s")
            rig.wait_until(lambda e=expr: query(api, e), rig.START_S,
                           f"value for {panel['title']}: {expr}")
    p.signal(signal.SIGTERM)
    p.wait_ok()


def test_rules():
    folder = os.path.join(CONF, "prometheus")
    tool("promtool", "check", "rules", os.path.join(folder, "alerts.yml"))
    tool("promtool", "test", "rules", os.path.join(folder, "alerts_test.yml"))


class Telemetry:
    """Reads as dpdk-telemetry.py does (usertools of DPDK)."""

    def __init__(self, runtime_dir, prefix):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.settimeout(rig.START_S)
        self.sock.connect(f"{runtime_dir}/dpdk/{prefix}/dpdk_telemetry.v2")
        self.size = json.loads(self.sock.recv(1024))["max_output_len"]

    def ask(self, command):
        self.sock.send(command.encode())
        return json.loads(self.sock.recv(self.size))[command.split(",")[0]]


def check_script(net, at):
    """Run DPDK's own script with the command line from the log."""
    command = re.search(r"telemetry: RUNTIME_DIRECTORY=(\S+) (dpdk-telemetry.py) -f (\S+)",
                        net.daemons["a"].log())
    check(command and command[1] == at, "the log has no command line")
    p = subprocess.run([command[2], "-f", command[3]], input="/sumwire/counters,push_\n"
                       "/sumwire/lcores\n/ethdev/list\n", check=True, text=True,
                       env={**os.environ, "RUNTIME_DIRECTORY": command[1]},
                       stdout=subprocess.PIPE, timeout=rig.RUN_S)
    counters, lcores, ports = map(json.loads, p.stdout.splitlines())
    check(counters["/sumwire/counters"]["push_folded"] == net.stats("a")["push_folded"] and
          lcores["/sumwire/lcores"]["lcore0/turns"] > 0 and ports["/ethdev/list"],
          f"{p.stdout}")


def test_telemetry():
    """DPDK's own commands and ours work, also after the daemon gave up its
    rights; the next daemon replaces a killed daemon's link."""
    with named(Net(agents=1)) as net:
        net.ini["a"]["node"]["telemetry"] = "yes"
        net.start_all()
        net.client(0, *SMALL, "--steps", "20").wait_ok()
        at = net.path("a.run")
        seen = [Telemetry(at, unique("a")) for _ in range(5)]
        t = seen[0]
        commands = t.ask("/")
        check({"/ethdev/stats", "/sumwire/counters", "/sumwire/ports", "/sumwire/queues",
               "/sumwire/lcores", "/sumwire/times"} <= set(commands),
              f"{commands}")
        mine = t.ask("/sumwire/counters")
        stats = net.stats("a")
        check(mine["push_folded"] == stats["push_folded"] > 0 and
              mine["memory_quota_bytes"] == stats["memory_quota_bytes"],
              f"{mine}")
        some = t.ask("/sumwire/counters,rx_")
        check(some and all(name.startswith("rx_") for name in some), f"{some}")
        label = next(s for s in net.ini["a"] if s.startswith("port "))[5:]
        ports = t.ask(f"/sumwire/ports,{label}")
        queues = t.ask(f"/sumwire/queues,{label}.queue0")
        check(queues[f"port/{label}/queue0/rx_frames"] == ports[f"port/{label}/rx_frames"] > 0
              and "queue0" not in str(ports), f"{queues}, {ports}")
        check(t.ask("/sumwire/lcores")["lcore0/turns"] > 0, "lcores")
        times = t.ask("/sumwire/times,rtt")
        check(len(times) == 27 and times["rtt_ns/sum"] > 0, f"{times}")
        check(all(s.ask("/sumwire/counters") for s in seen), "five readers")
        check_script(net, at)
        net.daemons.pop("a").kill()
        net.start("a")  # removes the killed daemon's files
        check(Telemetry(at, unique("a")).ask("/sumwire/counters"), "again")
        net.stop("a")
        os.rmdir(at)  # the first daemon made it; it must be empty


def test_groups_and_stalls():
    """A scheduler with little credit waits for it; metrics count each group."""
    with named(Net(agents=2, job={"credit": "4KiB"})) as net:
        net.start_all()
        clients = proc_coll.start_local(net, (1, 1), "--seed", "8", "--colls", "1000000")
        agent = f'daemon="{unique("agent0")}"'

        def counted():
            text = metrics().stdout
            found = {family: max((n for row, n in values(text, f"sumwire_{family}").items()
                                  if agent in row), default=0)
                     for family in ("job_group_collectives_total", "job_group_bytes_total",
                                    "job_group_collective_seconds_total",
                                    "stalls_credit_total", "stalled_credit_seconds_total")}
            return all(found.values())
        rig.wait_until(counted, rig.START_S, "collectives of a group, and stalls")
        rig.wait_until(lambda: re.search(
            rf"^GROUP .*\n(.* {UNIQUE[:3]}\S+ +[1-9].*\n)+", said("top", "--once", UNIQUE),
            re.MULTILINE), rig.START_S, "calls of a group in top")
        check(re.search(r"^  group    \S+: \d+ calls, [\d.]+ MB, [\d.]+ m?s each$",
                        said("status", UNIQUE), re.MULTILINE), "no group in the status")
        for c in clients:
            c.kill()


def test_readers_of_a_job():
    with named(Net(agents=2)) as net:
        net.start_all()
        clients = rig.start_forever(net, *SMALL)
        p, url = listen(net, "http")
        with tempfile.TemporaryDirectory() as folder:
            check_file(folder)
            check_http(url)
            check_crowd(url)
            check_prometheus(net, folder, url)
        check_top(net)
        for i, c in enumerate(clients):  # scrape while the job ends
            c.kill()
            for _ in range(4):
                get(url, OPEN if i else "")
        net.daemons["agent1"].signal(signal.SIGSTOP)
        rig.wait_until(lambda: f'{net.daemons["agent1"].pid}"' in " ".join(
            labels for labels, v in values(
                get(url)[1], "sumwire_daemon_up").items() if v == 0),
            rig.START_S, "a silent daemon is down")
        net.daemons["agent1"].signal(signal.SIGCONT)
        net.kill("a")
        rig.wait_until(lambda: f'"{unique("a")}"' not in get(url)[1], rig.START_S,
                       "a dead server is gone")
        net.check_alive("agent0", "agent1")
        net.start("a")  # removes the killed daemon's files
        p.signal(signal.SIGTERM)
        p.wait_ok()


if __name__ == "__main__":
    rig.main(dict(globals()))
