"""Who computes: processes and clusters, which all find the same."""

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from pacplan.experiments import ProblemSpec, Sweep, dask_cluster, read, run
from sweeps import GAPE, SMALL, UCT, count_lines, deadly, slow, timeless

pytestmark = pytest.mark.processes


def test_any_number_of_workers_gives_the_same_rows(tmp_path):
    sweep = Sweep([UCT, GAPE], [SMALL], budgets=[20, 500], seeds=15)
    alone = run(sweep, tmp_path / "one", workers=1)
    assert timeless(run(sweep, tmp_path / "two", workers=2)) == timeless(alone)
    for name in ("one", "two"):
        assert timeless(read(tmp_path / name)) == timeless(alone)
    with ThreadPoolExecutor(2) as threads:
        assert timeless(run(sweep, executor=threads, workers=2)) == timeless(alone)


def test_a_worker_that_dies_is_explained(tmp_path):
    sweep = Sweep([UCT], [ProblemSpec(deadly)], budgets=[20], seeds=3)
    with pytest.raises(RuntimeError, match="run the same again"):
        run(sweep, tmp_path, workers=2)


def test_dask_cluster_loses_a_worker_and_no_run(tmp_path):
    distributed = pytest.importorskip("distributed")
    sweep = Sweep([UCT, GAPE], [ProblemSpec(slow)], budgets=[20, 500], seeds=30)
    lines_at_kill = []

    def kill_one(pids):
        while count_lines(tmp_path) < 15:
            time.sleep(0.01)
        lines_at_kill.append(count_lines(tmp_path))
        os.kill(pids[0], signal.SIGKILL)

    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    ) as cluster:
        with distributed.Client(cluster) as client:
            before = sorted(client.run(os.getpid).values())
        assert len(before) == 2 and os.getpid() not in before
        killer = threading.Thread(target=kill_one, args=(before,))
        killer.start()
        with dask_cluster(cluster.scheduler_address) as (executor, at_once):
            assert at_once == 2
            records = run(sweep, tmp_path, executor=executor, workers=at_once)
        killer.join()
        assert not psutil.pid_exists(before[0])
    assert lines_at_kill[0] < len(records) == 120
    assert len({record.seed for record in read(tmp_path)}) == 120
    assert timeless(read(tmp_path)) == timeless(run(sweep, workers=1))
