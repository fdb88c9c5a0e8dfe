"""Serves one GGUF file on 127.0.0.1 with llama.cpp's server (package xllamacpp) until it is told to stop.

Usage: local_server.py WEIGHTS PORT CONTEXT PID_FILE   (PORT 0: 8080 when it is free, else any free port)
"""

import os
import signal
import socket
import sys
import threading

import xllamacpp


def free_port(wanted: int) -> int:
    """The wanted port when it can be bound, else one that the system chooses."""
    for port in ([wanted] if wanted else [8080, 0]):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return probe.getsockname()[1]
    sys.exit(f"port {wanted} is in use")


def main() -> None:
    weights, port, context, pid_file = sys.argv[1], free_port(int(sys.argv[2])), int(sys.argv[3]), sys.argv[4]
    params = xllamacpp.CommonParams()
    params.model.path = weights
    params.model_alias = {os.path.basename(weights).removesuffix(".gguf")}
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.n_ctx = context
    params.n_parallel = 1
    params.cpuparams.n_threads = os.cpu_count() or 2
    server = xllamacpp.Server(params)
    with open(pid_file + ".new", "w", encoding="utf-8") as file:
        file.write(f"{os.getpid()} {server.listening_address}/v1\n")
    os.replace(pid_file + ".new", pid_file)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    stop.wait()
    os._exit(0)


if __name__ == "__main__":
    main()
