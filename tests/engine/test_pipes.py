"""Processes at the end of pipes: what one of them is lost with, and what it sends."""

import os
import sys
import threading
from concurrent.futures import BrokenExecutor

import pytest

from pacplan.engine.pipes import call_pool


def job(what):
    """Do as it is told, in another process."""
    if what == "die":
        os._exit(1)
    if what == "leave":
        sys.exit(3)
    if what == "raise":
        raise ArithmeticError("so")
    return threading.Lock() if what == "lock" else (what, os.getpid())


def test_a_process_that_is_lost_takes_one_call_with_it():
    with call_pool(2, job) as pool:
        told = [0, "die", 1, "die", 2, 3, "die", 4]
        futures = [pool.submit(what) for what in told]
        lost = [isinstance(future.exception(), BrokenExecutor) for future in futures]
        assert lost == [what == "die" for what in told]
        found = [future.result() for future in futures if future.exception() is None]
    assert [what for what, _ in found] == [0, 1, 2, 3, 4]
    assert os.getpid() not in {process for _, process in found}


def test_what_is_raised_comes_back_and_costs_no_process():
    with call_pool(1, job) as pool:
        _, process = pool.submit(0).result()
        for what, error, words in (
            ("raise", ArithmeticError, "so"),
            ("leave", RuntimeError, "SystemExit"),
            ("lock", TypeError, "pickle"),
        ):
            with pytest.raises(error, match=words):
                pool.submit(what).result()
        with pytest.raises(TypeError, match="pickle"):
            pool.submit(threading.Lock()).result()
        assert pool.submit(1).result() == (1, process)
