"""Trainers of frameworks, around a model of torch_loops' size: they measure their phases as it does, by the frameworks' own hooks.

torch_frameworks.py transformers|lightning
"""

import sys
import tempfile
import threading
import time

import torch

from torch_loops import Clock, Model, Numbers, answer

STEPS = 1 << 40


class Measured:
    """Spends the clock's time on a phase while it is entered; what lies within another one is taken from that."""

    def __init__(self, clock):
        self.clock = clock
        self.began = []

    def enter(self, phase):
        now = time.perf_counter()
        if self.began:
            self.clock.spend(self.began[-1][0], self.began[-1][1])
        self.began.append([phase, now])

    def leave(self):
        phase, began = self.began.pop()
        now = self.clock.spend(phase, began)
        if self.began:
            self.began[-1][1] = now

    def around(self, phase, function):
        def timed(*args, **more):
            self.enter(phase)
            try:
                return function(*args, **more)
            finally:
                self.leave()
        return timed


def stepped(clock):
    clock.steps += 1
    if clock.steps == 4:
        threading.Thread(target=answer, args=(clock,), daemon=True).start()
        print("ready", flush=True)


def measure_data(measured):
    kind = torch.utils.data.dataloader._BaseDataLoaderIter
    kind.__next__ = measured.around("data", kind.__next__)


def by_transformers(clock, measured):
    import transformers

    class Classifier(Model):
        def forward(self, x, y):
            out = super().forward(x)
            return {"loss": torch.nn.functional.cross_entropy(out, y), "logits": out}

    class Pairs(Numbers):
        def __len__(self):
            return 1 << 16  # they are shuffled

        def __getitem__(self, index):
            x, y = super().__getitem__(index)
            return {"x": x, "y": y}

    class Callback(transformers.TrainerCallback):
        def on_pre_optimizer_step(self, *_, **__):
            measured.enter("optimizer")

        def on_optimizer_step(self, *_, **__):
            measured.leave()

        def on_step_end(self, *_, **__):
            stepped(clock)

    model = Classifier()
    model.zero_grad = measured.around("zero_grad", model.zero_grad)
    arguments = transformers.TrainingArguments(
        tempfile.gettempdir(), max_steps=STEPS, per_device_train_batch_size=32, save_strategy="no", report_to=[], use_cpu=True,
        disable_tqdm=True, logging_strategy="no", max_grad_norm=0.0, remove_unused_columns=False)
    trainer = transformers.Trainer(model, arguments, train_dataset=Pairs(), callbacks=[Callback()])
    trainer.compute_loss = measured.around("forward", trainer.compute_loss)
    trainer.accelerator.backward = measured.around("backward", trainer.accelerator.backward)
    trainer.train()


def by_lightning(clock, measured):
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = Model()

        def training_step(self, batch, _):
            measured.enter("forward")
            loss = torch.nn.functional.cross_entropy(self.model(batch[0]), batch[1])
            measured.leave()
            return loss

        def backward(self, loss):
            measured.enter("backward")
            loss.backward()
            measured.leave()

        def optimizer_step(self, epoch, index, optimizer, closure):
            measured.enter("optimizer")
            optimizer.step(closure=measured.around("other", closure))
            measured.leave()

        def optimizer_zero_grad(self, epoch, index, optimizer):
            measured.enter("zero_grad")
            optimizer.zero_grad()
            measured.leave()

        def on_train_batch_end(self, *_):
            stepped(clock)

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), lr=1e-3)

    trainer = lightning.Trainer(accelerator="cpu", devices=1, max_steps=STEPS, logger=False, enable_checkpointing=False,
                                enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(Module(), torch.utils.data.DataLoader(Numbers(), batch_size=32))


clock = Clock()
clock.seconds["other"] = 0.0
measured = Measured(clock)
measure_data(measured)
{"transformers": by_transformers, "lightning": by_lightning}[sys.argv[1]](clock, measured)
