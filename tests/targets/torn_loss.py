"""torn_loss.py: a local "loss" of 1.5 to 7.5 that is bound anew all the time, and whose memory other numbers get."""

KEPT = 64


def spin(turns):
    for _ in range(turns):
        pass


def train():
    others = [0.0] * KEPT
    step = 0
    while True:
        step += 1
        loss = float(step % 7) + 1.5
        if step == KEPT:
            print("ready", flush=True)
        spin(100)
        del loss
        others[step % KEPT] = 3.6e32 + step * 1e25  # each another one
        others[step % (KEPT - 3)] = 3.6e32 + step * 1e26


train()
