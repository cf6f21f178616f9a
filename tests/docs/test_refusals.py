"""A name that the tables of PyCUDA's and PybindGPU's names mark `no` raises an error of one line with the way out."""

import importlib

import pytest
import refusals


def test_each_name_that_is_not_there_names_the_way_out():
    found = refusals.errors()
    assert len(found) > 10 and [error for error in found.values() if not refusals.names_the_way_out(error)] == []


@pytest.mark.parametrize("module, name", [
    ("driver", "matrix_to_texref"), ("compiler", "get_nvcc_version"), ("compiler", "preprocess_source"),
    ("gpuarray", "reshape"), ("elementwise", "get_elwise_kernel")])
def test_names_that_pycuda_does_not_document_name_the_way_out(module, name):
    with pytest.raises(AttributeError) as error:
        getattr(importlib.import_module(f"gpuglue.compat.pycuda.{module}"), name)
    assert refusals.names_the_way_out(f"AttributeError: {error.value}")


@pytest.mark.parametrize("error, names", [
    (None, True), ("LogicError: host has no limits", False), ("AttributeError: x has no 'y' on gpuglue: use z", True),
    ("AttributeError: x has no 'y' on gpuglue: use\n z", False), ("AttributeError: module 'x' has no attribute 'y'", False)])
def test_an_error_without_a_way_out_is_seen(error, names):
    assert refusals.names_the_way_out(error) == names
