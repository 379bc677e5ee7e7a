"""The samples of a .bin/.idx pair in Megatron's order, by its description in docs/data.md, not the trainer's code."""

import struct

import numpy

TYPES = {1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 8: "uint16"}


class Pair:
    def __init__(self, prefix):
        index = open(f"{prefix}.idx", "rb").read()
        magic, version, code, sequences, _ = struct.unpack_from("<9sQBQQ", index)
        assert magic == b"MMIDIDX\0\0" and version == 1
        self.sizes = numpy.frombuffer(index, "<i4", sequences, 34)
        self.places = numpy.frombuffer(index, "<i8", sequences, 34 + 4 * sequences)
        self.bytes, self.type = open(f"{prefix}.bin", "rb").read(), numpy.dtype(TYPES[code])

    def sequence(self, number):
        return numpy.frombuffer(self.bytes, self.type, self.sizes[number], self.places[number])


def split_of(weights, which, sequences):
    """First and last but one sequence of a split."""
    weights = [float(weight) for weight in weights.split(",")]
    borders = [0.0, *numpy.cumsum([weight / sum(weights) for weight in weights])]
    first, last = (int(round(border * sequences)) for border in borders[which:which + 2])
    return first, last


def shuffled(random, values):
    random.shuffle(values)
    return values


def read_samples(pair, length, seed, wanted, part):
    """`wanted` samples of length + 1 tokens; part: first and last but one sequence of the split."""
    first, last = part
    tokens = int(pair.sizes[first:last].sum())
    epochs = max(1, -(-(wanted * length + 1) // tokens))
    all_samples, before_last = (max(0, (count * tokens - 1) // length) for count in (epochs, epochs - 1))
    apart = epochs > 1 and wanted - before_last < int(0.8 * ((tokens - 1) // length))
    random = numpy.random.RandomState(seed)
    rounds = [epochs - 1, 1] if apart else [epochs]
    numbers = numpy.arange(first, last, dtype=numpy.int32)
    order = numpy.concatenate([shuffled(random, numpy.tile(numbers, count)) for count in rounds])
    borders = [0, before_last, all_samples] if apart else [0, all_samples]
    chosen = numpy.concatenate([shuffled(random, numpy.arange(begin, end, dtype=numpy.uint32))
                                for begin, end in zip(borders, borders[1:])])
    stream = numpy.concatenate([pair.sequence(number) for number in order])
    return numpy.stack([stream[n * length:(n + 1) * length + 1] for n in chosen[:wanted].astype(numpy.int64)])
