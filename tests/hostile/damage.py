"""Ways in which a file is damaged."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Damage:
    """What was done to a file. `data` is None when the file was deleted."""

    kind: str
    # The first byte that differs.
    at: int
    data: bytes | None

    def __str__(self):
        return self.kind if self.data is None else f"{self.kind} at {self.at}"


# Kinds with their weights: a flipped bit is what disks and memory do most.
KINDS = {"flip": 10, "flips": 2, "cut": 4, "zeros": 3, "noise": 1, "append": 2, "delete": 2}


def damage(rng, sound, kind=None):
    """Damages bytes in a way that changes them."""
    kind = kind or rng.choices(list(KINDS), weights=KINDS.values())[0]
    if not sound and kind not in ("append", "delete"):
        kind = "append"
    data = bytearray(sound)
    at = rng.randrange(len(sound)) if sound else 0
    match kind:
        case "delete":
            return Damage(kind, 0, None)
        case "append":
            at = len(sound)
            data += bytes(rng.randrange(256) for _ in range(rng.choice([1, 8, 4096])))
        case "cut":
            # Ends of blocks and nothing at all are likelier than chance has it.
            at = rng.choice([at, 0, at // 4096 * 4096, len(sound) - 1])
            del data[at:]
        case "flip":
            data[at] ^= 1 << rng.randrange(8)
        case "flips":
            for place in {at, *(rng.randrange(len(sound)) for _ in range(7))}:
                data[place] ^= 1 << rng.randrange(8)
                at = min(at, place)
        case "zeros" | "noise":
            length = rng.choice([4, 16, 512, 4096])
            end = min(len(sound), at + length)
            data[at:end] = bytes(end - at) if kind == "zeros" else rng.randbytes(end - at)
    if bytes(data) == sound:
        # Zeros where zeros were, or the same noise.
        return damage(rng, sound, "flip")
    return Damage(kind, at, bytes(data))
