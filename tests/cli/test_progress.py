#!/usr/bin/env python3
"""Progress on a terminal: the bar keeps within its width, and no other line is written over it; in a pipe there are plain lines."""
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import tempfile
import termios

fascicle, COLUMNS, WIPE = os.environ["FASCICLE"], 60, "\r\x1b[K"


def on_terminal(*words, until=None):
    """Exit code and everything that a terminal of COLUMNS columns is sent; SIGINT once `until` is seen."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
    process = subprocess.Popen([fascicle, *words], stdout=theirs, stderr=theirs)
    os.close(theirs)
    text = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # Linux: the other side is closed
            break
        if not piece:
            break
        text += piece
        if until and until in text:
            process.send_signal(signal.SIGINT)
            until = None
    return process.wait(timeout=600), text.decode()


with tempfile.TemporaryDirectory() as work:
    os.chdir(work)
    with open("text.txt", "w") as file:
        file.write("to be or not to be, that is the question; " * 200)
    subprocess.run([fascicle, "generate", "--nodes", "600", "--edges", "12000", "--output", "g.h5"], check=True, capture_output=True)
    train = ["train", "g.h5", "--text", "text.txt", "--threads", "1", "--max-time", "8"]
    for pair in ("batch=4", "steps_per_window=16", "eval_every=20", "eval_windows=8", "n_input=100", "n_output=100", "train_steps=1000000"):
        train += ["--set", pair]
    code, text = on_terminal(*train, "--output", "a")
    assert code == 75, (code, text)
    bars = re.findall(r"\r\x1b\[K(train [^\r\n]*)", text)
    bars = [bar for bar in bars if not bar.startswith("train:")]
    assert bars and all(len(bar) < COLUMNS for bar in bars), bars
    for bar in bars:  # whatever comes next has wiped it
        after = text[text.index(bar) + len(bar):]
        assert after.startswith(WIPE), (bar, after[:40])
    assert "validation" in text

    code, text = on_terminal("generate", "--nodes", "100000", "--edges", "4000000", "--output", "b.h5", until=b"ordering")
    assert code == 1 and f"{WIPE}fascicle: stopped on request (SIGINT)" in text and not os.path.exists("b.h5"), (code, text)

    piped = subprocess.run([fascicle, *train, "--output", "b"], capture_output=True, text=True)
    assert piped.returncode == 75 and "\x1b" not in piped.stderr and "\r" not in piped.stderr and "[" not in piped.stderr, piped.stderr
print(f"progress: {len(bars)} bars, the longest of {max(map(len, bars))} columns")
