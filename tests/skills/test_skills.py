"""Each skill finds the fault that a job was planted with, first; in a healthy job none finds anything above info."""

import json
import os
import re
import subprocess

import pytest

from support import pythons
from support.target import PROBING, Target, free_port, probing
from support.torch_python import torch_python

HERE = os.path.dirname(os.path.abspath(__file__))
SKILLS = ["health", "hang", "slow", "leak", "nan", "crash", "overhead", "comm"]
SEVERITIES = ["info", "low", "medium", "high"]


def line_of(text):
    """Where the job's source has it."""
    with open(os.path.join(HERE, "job.py")) as source:
        return next(number for number, line in enumerate(source, 1) if text in line)


def run(target, *words, **more):
    done = probing("-t", target, "skill", "run", *words, "--json", check=False, timeout=240, **more)
    assert done.returncode in (0, 1), done.stderr
    told = json.loads(done.stdout)
    worst = [SEVERITIES.index(finding["severity"]) for finding in told["findings"]]
    assert worst == sorted(worst, reverse=True)
    assert done.returncode == (worst[:1] == [3]), told
    return told


def first(target, *words, **more):
    told = run(target, *words, **more)
    assert told["findings"], told
    return told["findings"][0]


@pytest.fixture
def planted(start, any_python):
    return lambda kind, *args, **more: start(more.pop("python", any_python), "job.py", kind, *args, folder=HERE, **more)


@pytest.fixture
def with_torch():
    path = torch_python()
    if not path:
        pytest.skip("no Python with torch")
    return pythons.Python([], path, (3, 0, 0), "torch")


def test_hang(planted):
    job = planted("hang")
    found = first(job.pid, "hang")
    assert found["severity"] == "high" and found["finding"].startswith("the main thread has not moved for "), found
    assert 8 <= int(re.search(r"for (\d+) s", found["finding"])[1]) <= 240
    assert found["where"].endswith("job.py:{} in transfer".format(line_of("# deadlock"))), found
    assert first(job.pid)["skill"] == "hang"  # of all of them, too


def test_idle_worker(planted):
    """A worker that waits for work is no hang."""
    job = planted("idle")
    with open("/proc/{0}/task/{0}/children".format(job.pid)) as file:
        (worker,) = (int(pid) for pid in file.read().split())
    told = run(worker, "hang")
    assert {found["severity"] for found in told["findings"]} == {"info"}, told
    assert "it waits for work" in told["findings"][0]["finding"], told


def test_slow(planted):
    found = first(planted("slow").pid, "slow")
    assert found["severity"] == "high" and "into getting data" in found["finding"], found
    assert found["where"].endswith("job.py:{} in load_batch".format(line_of("# the disk"))), found


def test_leak(planted):
    told = run(planted("leak").pid, "leak")
    found = told["findings"][0]
    assert found["severity"] in ("medium", "high"), found
    named = next((one for one in told["findings"] if "Sample" in one["finding"]), None)
    assert named, told
    assert named["severity"] in ("medium", "high") and "Trainer.history" in named["where"], told


def test_nan(planted, with_torch):
    found = first(planted("nan", python=with_torch).pid, "nan")
    assert found["severity"] == "high" and "NaN or infinity; the first is 0.weight" in found["finding"], found
    assert re.search(r"job\.py:\d+ in nan$", found["where"]), found


def test_overhead(tmp_path, any_python):
    """A profiler that was left on."""
    with Target(any_python, "-m", ["cProfile", os.path.join(HERE, "job.py"), "healthy"], folder="") as job:
        found = first(job.pid, "overhead")
    assert found["severity"] == "medium" and "cProfile" in found["finding"], found


def test_comm(with_torch):
    port = free_port()
    jobs = []
    try:
        for rank in range(3):
            environment = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 3, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "OMP_NUM_THREADS": 1}
            jobs.append(Target(with_torch, "job.py", ["comm", "slow"], folder=HERE, ready=False,
                               variables={name: str(value) for name, value in environment.items()}))
        for job in jobs:
            job.wait_ready()
        found = first(jobs[0].pid, "comm")
        assert found["severity"] in ("medium", "high") and found["finding"].startswith("rank 2 makes the others wait"), found
        assert found["where"].endswith("job.py:{} in slow_step".format(line_of("time.sleep(0.2)"))), found
    finally:
        for job in jobs:
            job.end()


def test_crash(planted, tmp_path, any_python):
    """Of a dump."""
    folder = str(tmp_path)
    program = tmp_path / "falls.py"
    program.write_text("import sys, time\nend = time.time() + 240\nwhile sys.excepthook is sys.__excepthook__ and time.time() < end:\n    time.sleep(0.01)\n"
                       "def forward(values):\n    return values['missing']\n\n\ntry:\n    forward({})\nexcept KeyError as error:\n"
                       "    raise ValueError('no batch') from error\n")
    done = subprocess.run([PROBING, "launch", "-D", "probing.crash=on", "-D", "probing.crash_dir=" + folder, *any_python.command(str(program))],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=270)
    dumps = [name for name in os.listdir(folder) if name.endswith(".snap")]
    assert len(dumps) == 1, (done, os.listdir(folder))
    told = run(os.path.join(folder, dumps[0]), "crash")
    assert told["findings"][0]["severity"] == "high" and "ValueError" in told["findings"][0]["finding"], told
    assert told["findings"][0]["where"].endswith("falls.py:12 in <module>"), told
    assert any("KeyError" in found["finding"] and found["where"].endswith("falls.py:6 in forward") for found in told["findings"]), told


@pytest.mark.parametrize("kind", ["healthy", "trains"])
def test_healthy(planted, kind, request):
    python = {"python": request.getfixturevalue("with_torch")} if kind == "trains" else {}
    told = run(planted(kind, **python).pid)
    assert {found["severity"] for found in told["findings"]} == {"info"}, told
    assert {found["skill"] for found in told["findings"]} >= {"health", "hang", "leak", "crash", "overhead"}, told
    assert told["notes"] == ["comm: the process has no other ranks on this machine"], told


# ---- files ----


def write(folder, name, text):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "w") as file:
        file.write(text)


def skill(name, *blocks):
    return "---\nname: {}\ndescription: A test. And more.\n---\n\n{}\n".format(name, "\n\n".join(blocks))


def sql(kind, statement):
    return "```sql {}\n{}\n```".format(kind, statement)


@pytest.fixture
def own(tmp_path):
    """own(name, *blocks): a file of the user's; then run(..., **own.where)."""

    def make(name, *blocks):
        write(str(tmp_path / "config" / "probing" / "skills"), name + ".md", skill(name, *blocks))

    make.where = {"env": dict(os.environ, XDG_CONFIG_HOME=str(tmp_path / "config")), "cwd": str(tmp_path)}
    return make


def test_list_and_show():
    told = json.loads(probing("skill", "list", "--json").stdout)
    assert [one["name"] for one in told] == SKILLS and all(one["description"] and one["path"] is None for one in told)
    text = probing("skill", "show", "hang").stdout
    with open(os.path.join(os.environ["SRCDIR"], "lib", "skill", "builtin", "hang.md")) as file:
        assert text == file.read()


def test_install(tmp_path):
    probing("skill", "install", tmp_path / "a" / "skills")
    for name in SKILLS:
        text = (tmp_path / "a" / "skills" / name / "SKILL.md").read_text()
        assert text == probing("skill", "show", name).stdout
    probing("skill", "install", tmp_path / "a" / "skills")  # again


def test_own_files(own, planted, tmp_path):
    job = planted("hang")
    own("mine", "```sql keep two 3x0.1\nSELECT pid, 'a' AS text, 1 AS one, 1 AS one, NULL AS \"odd \"\"name\" FROM system.process\n```",
        sql("finding", "SELECT 'LOW', printf('%d looks, %s', count(*), min(text)), NULL, :seconds FROM kept.two HAVING min(look) = 0 AND max(look) = 2"),
        sql("table Rows", "SELECT * FROM kept.two"), "```python\nnot a step\n```", sql("finding", "SELECT 'strange', 'b'"))
    write(str(tmp_path / ".probing" / "skills" / "theirs"), "SKILL.md", skill("theirs", sql("finding", "SELECT 'high', 'c'")))
    names = [one["name"] for one in json.loads(probing("skill", "list", "--json", **own.where).stdout)]
    assert names == SKILLS + ["mine", "theirs"]
    told = run(job.pid, "mine", "--seconds", "0.5", **own.where)
    assert told["findings"] == [{"severity": "low", "finding": "3 looks, a", "where": None, "next": "0.5", "skill": "mine"},
                                {"severity": "info", "finding": "b", "where": None, "next": None, "skill": "mine"}]
    assert told["tables"][0]["rows"] == [[job.pid, "a", 1, 1, None, look] for look in range(3)]
    assert first(job.pid, "theirs", **own.where)["severity"] == "high"


def test_looks_are_apart(own, planted):
    """Also when the first comes late, as a step before it took long."""
    job = planted("hang")
    own("mine", sql("keep numbers", "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 5000000) SELECT max(n) AS n FROM t"),
        sql("keep moments 3x0.3", "SELECT now() AS at"), sql("finding", "SELECT 'info', max(at) - min(at) FROM kept.moments"))
    assert float(first(job.pid, "mine", **own.where)["finding"]) > 0.55


def test_series_side_by_side(own, planted):
    """Each has its own time between looks; blocks behind them see all of both."""
    job = planted("hang")
    own("mine", sql("keep slow 3x0.6", "SELECT now() AS at"), sql("keep fast 5x0.3 beside", "SELECT now() AS at"),
        sql("finding", "SELECT 'info', printf('%d %d', (SELECT count(*) FROM kept.slow), (SELECT count(*) FROM kept.fast))"),
        sql("finding", "SELECT 'info', (SELECT max(at) - min(at) FROM kept.slow)"),
        sql("finding", "SELECT 'info', (SELECT min(at) FROM kept.fast) - (SELECT max(at) FROM kept.slow)"))
    counts, spread, behind = (one["finding"] for one in run(job.pid, "mine", **own.where)["findings"])
    assert counts == "3 5" and float(spread) > 1.1 and float(behind) < 0


def test_hostile_files(own, planted, tmp_path):
    """They can change nothing, and end."""
    job = planted("hang")
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT 'high', 'row ' || i FROM n"
    own("many", sql("finding", endless), sql("table T", endless), sql("keep k", endless), sql("finding", "SELECT 'info', count(*) FROM kept.k"))
    told = run(job.pid, "many", **own.where)
    assert len(told["findings"]) == 200 and len(told["tables"][0]["rows"]) == 200 and told["tables"][0]["truncated"]
    own("changes", *(sql("finding", text) for text in (
        "ATTACH '{}' AS x".format(tmp_path / "made"), "DROP TABLE kept.since", "CREATE TABLE kept.x (y)", "SELECT load_extension('x')",
        "SELECT writefile('{}', 'x')".format(tmp_path / "made"), "PRAGMA query_only", "SELECT 1", "SELECT 'a', 'b', x'00'")))
    told = run(job.pid, "changes", **own.where)
    assert len(told["notes"]) == 7 and not (tmp_path / "made").exists(), told
    assert [found["finding"] for found in told["findings"]] == ["b"]
    for name, text in {"nohead": "# hm\n", "noname": "---\ndescription: x\n---\n", "open": skill("open", "```sql finding\nSELECT 1"),
                       "bad name": skill("../x"), "long": skill("long", "x" * 300000), "hang": skill("hang"),
                       "wait": skill("wait", "```wait 1e9\n```"), "looks": skill("looks", sql("keep a 1000000x1", "SELECT 1")),
                       "beside": skill("beside", sql("finding", "SELECT 1"), sql("keep a 2x1 beside", "SELECT 1")),
                       "since": skill("since", sql("keep since", "SELECT 1")),
                       "blocks": skill("blocks", *[sql("finding", "SELECT 1")] * 100)}.items():
        write(own.where["env"]["XDG_CONFIG_HOME"] + "/probing/skills", name + ".md", text)
    done = probing("skill", "list", "--json", check=False, **own.where)
    assert [one["name"] for one in json.loads(done.stdout)] == SKILLS + ["changes", "many"]
    assert "skills/bad name.md: line 2: the name may have" in done.stderr


def test_others_files_do_not_count(own, tmp_path):
    own("mine", sql("finding", "SELECT 'high', 'x'"))
    os.chmod(own.where["env"]["XDG_CONFIG_HOME"] + "/probing/skills/mine.md", 0o666)
    assert [one["name"] for one in json.loads(probing("skill", "list", "--json", **own.where).stdout)] == SKILLS


@pytest.mark.parametrize("words, told", [(("run", "hagn"), "did you mean `hang`?"), (("run",), "needs a target"), (("show",), "needs a name"),
                                         (("sho", "hang"), "sho"), (("run", "hang", "-s", "x"), "0.5 to 60")])
def test_wrong_words(words, told):
    target = () if words == ("run",) else ("-t", os.getpid())
    done = probing(*target, "skill", *words, check=False)
    assert done.returncode in (2, 3) and told in done.stderr, done


def test_text(planted):
    done = probing("-t", planted("healthy").pid, "skill", "run", "health")
    assert re.match(r"info +it runs: Python 3\.\d+\.\d+, 1 threads, ", done.stdout), done.stdout
