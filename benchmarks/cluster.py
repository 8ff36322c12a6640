"""A standalone Spark cluster on the loopback interface: one master and some workers, each a process.

`python -m benchmarks.cluster` starts one with the classes that pyspark brings, prints its address, and ends
it at Ctrl-C. A job finds it by `spark-submit --master ADDRESS job.py …`; see docs/spark.md.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

HOST = "127.0.0.1"
_DEPLOY = "org.apache.spark.deploy"


@contextmanager
def cluster(workers: int = 2, cores: int = 1, memory: str = "3g") -> Iterator[str]:
    """The address of a cluster whose workers have so many cores and so much memory each; ended at the end.

    What it logs and spills lies in a temporary folder that is removed.
    """
    with tempfile.TemporaryDirectory(prefix="spark-") as folder, ExitStack() as running:
        port = free_port()
        address = f"spark://{HOST}:{port}"
        started = (Path(folder), running)
        _start("master.Master", ["--port", str(port), "--webui-port", "0"], *started, name="master")
        _until_open(port)
        own = ["--cores", str(cores), "--memory", memory, "--webui-port", "0", "--work-dir", folder, address]
        for i in range(workers):
            _start("worker.Worker", own, *started, name=f"worker-{i}")
        yield address


def free_port() -> int:
    """A port that nobody listens to now."""
    with socket.socket() as one:
        one.bind((HOST, 0))
        return int(one.getsockname()[1])


def _start(kind: str, words: Sequence[str], folder: Path, running: ExitStack, *, name: str) -> None:
    """Start a Java process that ends with `running`, in a group of its own so that its executors end too."""
    import pyspark

    home = Path(pyspark.__file__).parent
    own = {
        "SPARK_HOME": home,
        "SPARK_LOCAL_IP": HOST,
        "SPARK_LOCAL_DIRS": folder,
    }  # loopback only, web pages too
    log = running.enter_context((folder / f"{name}.log").open("w", encoding="utf-8"))
    process = subprocess.Popen(
        [str(home / "bin" / "spark-class"), f"{_DEPLOY}.{kind}", "--host", HOST, *words],
        env=os.environ | {key: str(value) for key, value in own.items()},
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    running.callback(_end, process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ask a process and its children to end, and wait."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    process.wait(timeout=60)


def _until_open(port: int, seconds: float = 60) -> None:
    """Wait until somebody listens."""
    end = time.monotonic() + seconds
    while True:
        with suppress(OSError), socket.create_connection((HOST, port), timeout=1):
            return
        if time.monotonic() > end:
            raise RuntimeError(f"nobody listens to port {port} after {seconds:.0f} s; is Java installed?")
        time.sleep(0.2)


def main() -> None:
    """Run a cluster until Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description=__doc__)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--cores", type=int, default=1, help="of each worker")
    parser.add_argument("--memory", default="3g", help="of each worker")
    options = parser.parse_args()
    with cluster(options.workers, options.cores, options.memory) as address, suppress(KeyboardInterrupt):
        print(address, flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
