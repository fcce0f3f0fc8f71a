"""Lists and ranges of values."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xpline.errors import XplineError
from xpline.values import UNITS, counts, sizes, words

numbers = st.integers(min_value=0, max_value=1 << 40)
positive = st.integers(min_value=1, max_value=1 << 40)


@given(st.lists(numbers, min_size=1, unique=True))
def test_a_list_reads_back_as_it_was_written(values):
    assert sizes(",".join(map(str, values)), "size") == values
    assert sizes(values, "size") == values
    assert counts([str(value) for value in values], "threads") == values


@given(positive, positive)
def test_a_range_goes_from_its_start_to_its_end_by_doubling(one, other):
    first, last = sorted((one, other))
    values = counts(f"{first}..{last}", "threads")
    assert values[0] == first
    assert values[-1] == last
    steps = list(pairwise(values))
    assert all(after == 2 * before for before, after in steps[:-1])
    assert all(before < after <= 2 * before for before, after in steps)


@given(st.integers(min_value=0, max_value=1 << 20), st.sampled_from(list(UNITS)))
def test_a_unit_multiplies(number, unit):
    assert sizes(f"{number}{unit}", "size") == sizes(f" {number} {unit} ", "size") == [number * UNITS[unit]]


@given(st.text(max_size=20))
def test_any_text_gives_whole_numbers_or_a_message_that_names_it(text):
    try:
        values = sizes(text, "size")
    except XplineError as error:
        assert repr(text) in str(error) or any(repr(part.strip()) in str(error) for part in text.split(","))
        assert str(error).startswith("size = ")
    else:
        assert values
        assert all(isinstance(value, int) and value >= 0 for value in values)


@pytest.mark.parametrize(
    "text",
    ["", ",", "64,,128", "-64", "64..", "..64", "0..8", "8..4", "1..2..4", "64KB", "64 bytes", "6.4", "²", "9" * 30],
)
def test_what_is_no_list(text):
    with pytest.raises(XplineError, match="size = "):
        sizes(text, "size")


@pytest.mark.parametrize("value", [64.0, True, None, [64, 1.5], [[64]]])
def test_what_is_no_whole_number(value):
    with pytest.raises(XplineError, match=r"threads = .*not a whole number"):
        counts(value, "threads")


def test_counts_have_no_units():
    with pytest.raises(XplineError, match="threads = '4KiB': expected whole numbers, such as"):
        counts("4KiB", "threads")


def test_repeated_values_run_once():
    assert sizes("64,256,64..256", "size") == [64, 256, 128]
    assert words(["load", "store", "load"], "op") == ["load", "store"]


def test_words_may_be_listed():
    assert words("load,store+clwb", "op") == words(["load", "store+clwb"], "op") == ["load", "store+clwb"]
    with pytest.raises(XplineError, match="op = 'load,'"):
        words("load,", "op")
