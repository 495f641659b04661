# A cable between two Ethernet interfaces that delays and drops frames, for kernels without netem.
# usage: wire.py INTERFACE INTERFACE; on stdin lines of "DELAY_MS JITTER_MS DROPPED_SHARE"; ends with stdin.
import fcntl
import heapq
import os
import random
import select
import struct
import sys
import time

TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x2, 0x1000
LONGEST_FRAME = 65_536
# Frames that wait at most, as a switch has them.
MOST_WAITING = 5_000


def open_tap(name):
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
    return tap


taps = [open_tap(name) for name in sys.argv[1:3]]
delay, jitter, share = 0.0, 0.0, 0.0
passed = dropped = number = 0
last = [0.0, 0.0]
waiting = []
print("ready", flush=True)
while True:
    timeout = None if not waiting else max(0.0, waiting[0][0] - time.monotonic())
    ready, _, _ = select.select([*taps, 0], [], [], timeout)
    if 0 in ready:
        line = sys.stdin.readline()
        if line == "":
            break
        delay, jitter, share = (float(word) for word in line.split())
        print(f"{passed} {dropped}", flush=True)
    for end in (0, 1):
        if taps[end] not in ready:
            continue
        try:
            frame = os.read(taps[end], LONGEST_FRAME)
        except OSError:
            continue
        if random.random() < share or len(waiting) >= MOST_WAITING:
            dropped += 1
            continue
        passed += 1
        number += 1
        at = time.monotonic() + max(0.0, delay + random.uniform(-jitter, jitter)) / 1000
        # In the order they came.
        last[end] = max(last[end], at)
        heapq.heappush(waiting, (last[end], number, 1 - end, frame))
    while waiting and waiting[0][0] <= time.monotonic():
        _, _, end, frame = heapq.heappop(waiting)
        try:
            os.write(taps[end], frame)
        except OSError:
            # The interface is down: that frame is lost.
            dropped += 1
