"""Training loops whose variables are watched, small and fast, in epochs of ten steps; each says what its losses were.

torch_watched.py transformers|lightning|function|module|wrapped|returned|inference

Each line of its input is evaluated, and the result printed; told has (loss, epoch) of each step.
"""

import os
import sys
import tempfile
import threading
import time

import torch

STEPS_AN_EPOCH, BATCH = 10, 4
PAUSE = 0.002
told = []

torch.set_num_threads(1)
torch.manual_seed(0)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 2)

    def forward(self, x, y=None):
        out = self.inner(x)
        return out if y is None else {"loss": torch.nn.functional.cross_entropy(out, y), "logits": out}


class Pairs(torch.utils.data.Dataset):
    def __len__(self):
        return STEPS_AN_EPOCH * BATCH

    def __getitem__(self, index):
        return {"x": torch.randn(4), "y": index % 2}


def answer():
    for line in sys.stdin:
        print(eval(line, globals()), flush=True)


def tell(loss, epoch):
    told.append((float(loss), epoch))
    time.sleep(PAUSE)
    if len(told) == 3:
        print("pid {}".format(os.getpid()))
        print("ready", flush=True)


def by_transformers():
    import transformers

    class Trainer(transformers.Trainer):
        def compute_loss(self, *args, **more):
            self.last = super().compute_loss(*args, **more)
            return self.last

    class Callback(transformers.TrainerCallback):
        def on_step_end(self, arguments, state, control, **_):
            tell(trainer.last, state.global_step)

    arguments = transformers.TrainingArguments(
        tempfile.gettempdir(), num_train_epochs=1 << 30, per_device_train_batch_size=BATCH, save_strategy="no", report_to=[], use_cpu=True,
        disable_tqdm=True, logging_strategy="no", remove_unused_columns=False, learning_rate=1e-3, lr_scheduler_type="constant")
    trainer = Trainer(Model(), arguments, train_dataset=Pairs(), callbacks=[Callback()])
    trainer.train()


def by_lightning():
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = Model()

        def training_step(self, batch, _):
            loss = self.model(**batch)["loss"]
            self.last = loss.detach()
            return loss

        def on_train_batch_end(self, *_):
            tell(self.last, self.current_epoch)

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), lr=1e-3)

    trainer = lightning.Trainer(accelerator="cpu", devices=1, max_epochs=-1, logger=False, enable_checkpointing=False,
                                enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(Module(), torch.utils.data.DataLoader(Pairs(), batch_size=BATCH))


def of_pairs():
    model = Model()
    return model, torch.optim.AdamW(model.parameters(), lr=1e-3), torch.utils.data.DataLoader(Pairs(), batch_size=BATCH)


def in_a_function():
    model, optimizer, batches = of_pairs()
    for epoch in range(1 << 40):
        for batch in batches:
            loss = model(**batch)["loss"]
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            tell(loss.detach(), epoch)


def wrapped():
    """Whoever calls the optimizer has no loss, but its caller has."""
    model, optimizer, batches = of_pairs()

    def update(times):
        for _ in range(times):
            optimizer.step()
        optimizer.zero_grad()

    for epoch in range(1 << 40):
        for batch in batches:
            loss = model(**batch)["loss"]
            loss.backward()
            update(1)
            tell(loss.detach(), epoch)


def one_step(model, optimizer, batch):
    found = model(**batch)["loss"]
    found.backward()
    optimizer.step()
    optimizer.zero_grad()
    return found.item()


def returned():
    """The loss of a step gets its name after the optimizer's step."""
    model, optimizer, batches = of_pairs()
    for epoch in range(1 << 40):
        for batch in batches:
            loss = one_step(model, optimizer, batch)
            tell(loss, epoch)


MODULE = """
model, optimizer, batches = of_pairs()
for epoch in range(1 << 40):
    for batch in batches:
        loss = model(**batch)["loss"]
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        tell(loss.detach(), epoch)
"""


def inference():
    """No optimizer: a step is a call of the model."""
    model = Model()
    model(torch.ones(1, 4))
    for epoch in range(1 << 40):
        for number in range(STEPS_AN_EPOCH):
            loss = torch.tensor(epoch + number / 64)
            with torch.no_grad():
                model(torch.ones(1, 4))
            tell(loss.detach(), epoch)


threading.Thread(target=answer, daemon=True).start()
if sys.argv[1] == "module":
    exec(compile(MODULE, __file__, "exec"))
else:
    {"transformers": by_transformers, "lightning": by_lightning, "function": in_a_function, "wrapped": wrapped, "returned": returned,
     "inference": inference}[sys.argv[1]]()
