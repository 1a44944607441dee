"""Reads labelled samples: a line each, numbers and at the end a two-valued label, separated by commas."""

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


class DataError(ValueError):
    """The data can't be used: says which file and line, what is wrong there, and the remedy."""


@dataclass(frozen=True)
class Samples:
    """Features of shape (samples, features) and targets of shape (samples,): +1 for `labels[0]`, -1 for `labels[1]`."""

    features: Matrix
    targets: Matrix
    labels: tuple[str, str]

    def __len__(self) -> int:
        return len(self.targets)

    def chosen(self, rows: NDArray[np.intp]) -> "Samples":
        """The samples in these rows, in their order."""
        return Samples(self.features[rows], self.targets[rows], self.labels)


@dataclass(frozen=True)
class Split:
    """The samples to train on and those to measure on; no sample is in both."""

    training: Samples
    held_out: Samples


def _rows(file: Path) -> Iterator[tuple[int, list[str]]]:
    """Line numbers and stripped fields, empty lines left out."""
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.reader(stream, strict=True)
            for fields in reader:
                stripped = [field.strip() for field in fields]
                if any(stripped):
                    yield reader.line_num, stripped
    except UnicodeDecodeError as error:
        raise DataError(
            f"{file.name}: not UTF-8 text ({error.reason}, byte {error.start}). Save it as UTF-8."
        ) from None
    except OSError as error:
        raise DataError(f"{file}: {error.strerror}. Name a file of samples that can be read.") from None
    except csv.Error as error:
        raise DataError(f"{file.name}, line {reader.line_num}: {error}. Separate the fields by commas.") from None


def _numbers(where: str, fields: Sequence[str], first_line: bool) -> list[float]:
    numbers = []
    for position, text in enumerate(fields, start=1):
        try:
            number = float(text)
        except ValueError:
            header = " If this line names the columns, remove it." if first_line else ""
            what = f"{text!r} is not a number" if text else "the number is missing"
            raise DataError(f"{where}, field {position}: {what}. Write a number such as 0.25.{header}") from None
        if not math.isfinite(number):
            raise DataError(f"{where}, field {position}: {text!r} is not finite. Write a finite number.")
        numbers.append(number)
    return numbers


def _complete_rows(file: Path) -> Iterator[tuple[int, list[float], str]]:
    """Line numbers, numbers and labels."""
    width = first = 0
    for line, fields in _rows(file):
        where = f"{file.name}, line {line}"
        if not width:
            width, first = len(fields), line
            if width < 2:
                raise DataError(f"{where}: {fields[0]!r} is a single field. Write numbers and a label, with commas.")
        if len(fields) != width:
            raise DataError(
                f"{where}: {len(fields)} fields, and line {first} has {width}. Give every line the same numbers and "
                "one label at its end."
            )
        label = fields[-1]
        if not label:
            raise DataError(f"{where}: the label is missing, the last field is empty. Write the sample's label there.")
        yield line, _numbers(where, fields[:-1], line == first), label


def read_samples(file: Path) -> Samples:
    """Reads a file of labelled samples. The label that comes first in alphabetical order is the class +1.

    Raises:
        DataError: Unreadable text, lines of different lengths, a field that is no finite number, a missing or third
            label, or fewer than two labels.
    """
    features: list[list[float]] = []
    labels: list[str] = []
    first_seen: dict[str, int] = {}
    for line, numbers, label in _complete_rows(file):
        if label not in first_seen and len(first_seen) == 2:
            known = " and ".join(f"{name!r} (line {seen})" for name, seen in first_seen.items())
            raise DataError(
                f"{file.name}, line {line}: {label!r} is a third label, beside {known}. Keep two labels, as the last "
                "field of each line."
            )
        first_seen.setdefault(label, line)
        features.append(numbers)
        labels.append(label)
    if len(first_seen) < 2:
        found = f"every sample has the label {labels[0]!r}" if labels else "there are no samples"
        raise DataError(f"{file.name}: {found}. Give samples of two labels.")
    positive, negative = sorted(first_seen)
    targets = np.array([1.0 if label == positive else -1.0 for label in labels])
    return Samples(np.array(features), targets, (positive, negative))


def read_features(file: Path, width: int) -> Matrix:
    """Reads samples to predict: lines of `width` numbers; a label after them is passed over. Shape (samples, width).

    Raises:
        DataError: Unreadable text, no samples, a line of another length, or a field that is no finite number.
    """
    features: list[list[float]] = []
    for line, fields in _rows(file):
        where = f"{file.name}, line {line}"
        if len(fields) not in (width, width + 1):
            raise DataError(f"{where}: {len(fields)} fields. The model takes {width} numbers, a label may follow.")
        features.append(_numbers(where, fields[:width], not features))
    if not features:
        raise DataError(f"{file.name}: there are no samples. Write a line of {width} numbers for each.")
    return np.array(features)


def read_channel(channel: Path) -> Samples:
    """Reads the one file that an input channel holds.

    Raises:
        DataError: The channel doesn't hold exactly one file, or its file can't be used.
    """
    files = sorted(path for path in channel.rglob("*") if path.is_file()) if channel.is_dir() else []
    if len(files) != 1:
        names = ", ".join(path.name for path in files) or "no file"
        raise DataError(f"input channel {channel.name!r} holds {names}. Give it one file of samples.")
    return read_samples(files[0])


def split(samples: Samples, *, seed: int, ndata: int | None, held_out: float) -> Split:
    """Chooses the samples at random: the first `ndata` of a permutation to train on, the last ones to measure on.

    The permutation is numpy's legacy one, as in the published example, so the same seed trains on the same samples.

    Raises:
        DataError: Fewer than `ndata` samples are left beside the held-out ones, or none.
    """
    order = np.random.RandomState(seed).permutation(len(samples))
    kept = round(held_out * len(samples))
    most = len(samples) - kept
    wanted = most if ndata is None else ndata
    if wanted > most or most == 0:
        raise DataError(
            f"ndata = {'all' if ndata is None else ndata}: of {len(samples)} samples {kept} are held out "
            f"(held_out = {held_out:g}) and {most} are left to train on. Give ndata = {max(most, 1)} or less, or hold "
            "out fewer."
        )
    return Split(samples.chosen(order[:wanted]), samples.chosen(order[len(samples) - kept :]))
