# SPDX-License-Identifier: Apache-2.0
"""Messages of the C++ library and of the command name fields in backquotes; Python names its arguments."""

import pickle

import pytest

import precache
from precache._errors import make_error, name_arguments

pytest_plugins = ("package_fixtures",)


@pytest.mark.parametrize(
    "message, expected",
    [
        ("`shard_size` must be at least 1 byte, got 0", "shard_size= must be at least 1 byte, got 0"),
        ("raise `prefetch` or `device_batches`", "raise prefetch= or device_batches="),
        ("`source` and `out` overlap", "source and out overlap"),  # by position
        ("raise `pin_shards_up_to_bytes`", "raise pin_shards_up_to="),  # another name
        ("set `overwrite`", "set overwrite=True"),
        ("Set `crop`, or give a list", "Set crop=, or give a list"),
        ("set `path_column` and `label_column` to the names", "set path_column= and label_column= to the names"),
        ("Set `overwrite`, or choose another `out`.", "Set overwrite=True, or choose another out."),
        ("set `dtype` to float32", "set dtype= to float32"),
        ("Run `pip install ml_dtypes`.", "Run `pip install ml_dtypes`."),  # not a field
        ("cannot read 'a`b'", "cannot read 'a`b'"),
        ("nothing to name", "nothing to name"),
    ],
)
def test_fields_become_arguments(message, expected):
    assert name_arguments(message) == expected
    error = make_error("InvalidArgument", message, message)
    assert (error.message, error.hint) == (expected, expected)
    again = pickle.loads(pickle.dumps(error))
    assert (again.message, again.hint) == (expected, expected)


def test_errors_of_the_library_are_translated(stamps):
    with pytest.raises(precache.InvalidArgument) as refused:
        precache.Loader(stamps.out, 4, rank=5, world_size=5)
    assert refused.value.message == "rank= must be below world_size=, got rank 5 of 5"
